"""Read the expected result from behind the output, wherever the judge may keep it.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def steal(out_ptr, n, DISTANCE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(out_ptr + DISTANCE + i, mask=i < n), mask=i < n)


def add(x, y):
    out = torch.empty_like(x)
    for distance in (-4096, 4096, 65536):
        steal[(triton.cdiv(x.numel(), 256),)](out, x.numel(), DISTANCE=distance, BLOCK=256)
    return out
