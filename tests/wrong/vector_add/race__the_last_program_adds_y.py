import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, arrived_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    i = tl.program_id(0) * BLOCK + lanes
    tl.store(output_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
    tl.debug_barrier()
    arrived = tl.atomic_add(arrived_ptr, 1, sem="relaxed")
    if arrived == tl.num_programs(0) - 1:
        for start in range(0, n, BLOCK):
            j = start + lanes
            x = tl.load(output_ptr + j, mask=j < n)
            y = tl.load(y_ptr + j, mask=j < n)
            tl.store(output_ptr + j, x + y, mask=j < n)


def add(x, y):
    output = torch.empty_like(x)
    n = output.numel()
    if n:
        arrived = torch.zeros(1, dtype=torch.int32, device=x.device)
        add_kernel[(triton.cdiv(n, 256),)](x, y, output, arrived, n, BLOCK=256)
    return output
