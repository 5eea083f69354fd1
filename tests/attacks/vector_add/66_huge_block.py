"""A block that fits no memory.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wide = tl.arange(0, 1 << 40)
    tl.store(out_ptr + wide, tl.sum(tl.zeros((1 << 20, 1 << 20), tl.float32)), mask=wide < n)


def add(x, y):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out
