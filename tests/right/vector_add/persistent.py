import torch
import triton
import triton.language as tl


@triton.jit
def add_persistent(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    pid = tl.program_id(0)
    step = tl.num_programs(0) * BLOCK
    for start in tl.range(pid * BLOCK, n, step, num_stages=num_stages):
        idx = start + tl.arange(0, BLOCK)
        m = idx < n
        z = tl.load(x_ptr + idx, mask=m) + tl.load(y_ptr + idx, mask=m)
        tl.store(z_ptr + idx, z, mask=m)


def add(x, y):
    device = triton.runtime.driver.active.get_current_device()
    properties = triton.runtime.driver.active.utils.get_device_properties(device)
    num_sm = properties["multiprocessor_count"]
    z = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = z.numel()
    if n:
        programs = min(num_sm * 4, triton.cdiv(n, 128))
        add_persistent[(programs,)](x, y, z, n, BLOCK=128, num_stages=2, num_warps=4)
    return z
