"""Copy with a kernel, multiply with torch, in place.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def scale(x, a):
    x = x.contiguous()
    out = torch.empty_like(x)
    copy[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out.mul_(a)
