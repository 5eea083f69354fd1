import torch
import triton
import triton.language as tl


@triton.jit
def turned_twice(x_ptr, y_ptr, scratch_ptr, z_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    lanes = tl.arange(0, BLOCK)
    i = start + lanes
    tl.store(scratch_ptr + start + BLOCK - 1 - lanes, tl.load(x_ptr + i, mask=i < n, other=0.0))
    tl.debug_barrier()
    j = start + BLOCK - 1 - lanes
    x = tl.load(scratch_ptr + i)
    tl.store(z_ptr + j, x + tl.load(y_ptr + j, mask=j < n), mask=j < n)


def add(x, y):
    z = torch.empty_like(x)
    n = z.numel()
    if n:
        programs = triton.cdiv(n, 512)
        scratch = torch.empty(programs * 512, dtype=x.dtype, device=x.device)
        turned_twice[(programs,)](x, y, scratch, z, n, BLOCK=512)
    return z
