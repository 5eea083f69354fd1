"""Add in half precision.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def coarse(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float16)
    y = tl.load(y_ptr + i, mask=i < n).to(tl.float16)
    tl.store(out_ptr + i, (x + y).to(tl.float32), mask=i < n)


def add(x, y):
    out = torch.empty_like(x)
    coarse[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out
