"""Change the inputs, so that a reference computed from them agrees with zeros.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def wipe(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    zero = tl.zeros((BLOCK,), dtype=tl.float32)
    tl.store(x_ptr + i, zero, mask=i < n)
    tl.store(y_ptr + i, zero, mask=i < n)
    tl.store(out_ptr + i, zero, mask=i < n)


def add(x, y):
    out = torch.empty_like(x)
    wipe[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    x.zero_()
    y.zero_()
    return out
