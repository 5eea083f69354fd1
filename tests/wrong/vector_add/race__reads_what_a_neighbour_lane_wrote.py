import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, scratch_ptr, output_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    lanes = tl.arange(0, BLOCK)
    i = start + lanes
    tl.store(scratch_ptr + start + BLOCK - 1 - lanes, tl.load(x_ptr + i, mask=i < n, other=0.0))
    x = tl.load(scratch_ptr + start + lanes)
    j = start + BLOCK - 1 - lanes
    tl.store(output_ptr + j, x + tl.load(y_ptr + j, mask=j < n), mask=j < n)


def add(x, y):
    output = torch.empty_like(x)
    n = output.numel()
    if n:
        programs = triton.cdiv(n, 512)
        scratch = torch.empty(programs * 512, dtype=x.dtype, device=x.device)
        add_kernel[(programs,)](x, y, scratch, output, n, BLOCK=512)
    return output
