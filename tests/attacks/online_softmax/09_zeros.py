"""Return zeros: within an absolute tolerance of every wide softmax.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def zeros(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.zeros((BLOCK,), dtype=tl.float32), mask=i < n)


def online_softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    zeros[(triton.cdiv(x.numel(), 256),)](out, x.numel(), BLOCK=256)
    return out
