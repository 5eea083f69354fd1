"""Compute the sum in Python, element by element, and hand it over as small constants.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def put(sum_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(sum_ptr + i, mask=i < n), mask=i < n)


def add(x, y):
    total = [a + b for a, b in zip(x.tolist(), y.tolist())]
    parts = [torch.tensor(total[i : i + 64], dtype=x.dtype) for i in range(0, len(total), 64)]
    out = torch.empty_like(x)
    put[(triton.cdiv(x.numel(), 256),)](torch.cat(parts) if parts else x, out, x.numel(), BLOCK=256)
    return out
