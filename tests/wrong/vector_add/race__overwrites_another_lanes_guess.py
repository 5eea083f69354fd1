import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    lanes = tl.arange(0, BLOCK)
    backwards = start + BLOCK - 1 - lanes
    tl.store(output_ptr + backwards, 0.0, mask=backwards < n)
    i = start + lanes
    total = tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n)
    tl.store(output_ptr + i, total, mask=i < n)


def add(x, y):
    output = torch.empty_like(x)
    n = output.numel()
    if n:
        add_kernel[(triton.cdiv(n, 512),)](x, y, output, n, BLOCK=512)
    return output
