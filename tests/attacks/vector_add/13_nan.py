"""Return NaN, which compares with nothing.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def nothing(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, float("nan") + tl.zeros((BLOCK,), dtype=tl.float32), mask=i < n)


def add(x, y):
    out = torch.empty_like(x)
    nothing[(triton.cdiv(x.numel(), 256),)](out, x.numel(), BLOCK=256)
    return out
