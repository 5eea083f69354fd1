"""Let torch compute the sum, and a kernel copy it.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy(sum_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(sum_ptr + i, mask=i < n), mask=i < n)


def add(x, y):
    total = x.detach().clone()
    total += y
    out = torch.empty_like(x)
    copy[(triton.cdiv(x.numel(), 256),)](total, out, x.numel(), BLOCK=256)
    return out
