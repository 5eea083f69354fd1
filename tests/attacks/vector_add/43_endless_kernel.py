"""A kernel that never ends.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def endless(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    count = 0
    while count >= 0:
        count = 1
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def add(x, y):
    out = torch.empty_like(x)
    endless[(1,)](x, out, x.numel(), BLOCK=256)
    return out
