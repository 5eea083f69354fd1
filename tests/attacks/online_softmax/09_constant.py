"""Return 1 / N everywhere: within a careless tolerance of every wide softmax.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def constant(out_ptr, n, value, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, value + tl.zeros((BLOCK,), dtype=tl.float32), mask=i < n)


def online_softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    constant[(triton.cdiv(x.numel(), 256),)](out, x.numel(), 1 / max(x.shape[1], 1), BLOCK=256)
    return out
