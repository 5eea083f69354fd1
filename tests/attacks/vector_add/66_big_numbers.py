"""Numbers that take for ever to compute, while the kernel is read.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


LIMIT = 9**9**9


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    huge = 10**10**10
    shifted = 1 << (1 << 40)
    tl.store(out_ptr + i, huge % 7 + shifted, mask=i < n)


def add(x, y):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out
