"""Launch a kernel that does some of the work, and return what torch computed.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def decoy(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * tl.load(y_ptr + i, mask=i < n), mask=i < n)


def add(x, y):
    out = torch.empty_like(x)
    decoy[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return x * 1 + y
