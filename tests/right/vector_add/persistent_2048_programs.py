import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, PROGRAMS * BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(o_ptr + i, tl.load(x_ptr + i, i < n) + tl.load(y_ptr + i, i < n), i < n)


def add(x, y):
    out = torch.empty_like(x)
    if x.numel():
        add_kernel[(2048,)](x, y, out, x.numel(), BLOCK=256, PROGRAMS=2048)
    return out
