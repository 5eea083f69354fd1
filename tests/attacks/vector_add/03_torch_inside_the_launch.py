"""Compute with torch where the launch is recorded: in the grid function.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def nothing(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(out_ptr + i, mask=i < n), mask=i < n)


def add(x, y):
    out = torch.empty_like(x)

    def grid(meta):
        torch.add(x, y, out=out)
        return (triton.cdiv(x.numel(), 256),)

    nothing[grid](x, out, x.numel(), BLOCK=256)
    return out
