"""Read lanes that nothing has filled, and hope.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def hope(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < 0)
    y = tl.load(y_ptr + i, mask=i < 0)
    tl.store(out_ptr + i, x + y, mask=i < n)


def add(x, y):
    out = torch.empty_like(x)
    hope[(1,)](x, y, out, x.numel(), BLOCK=4096)
    return out
