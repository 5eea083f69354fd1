"""A plan of allocations that only the replay pays for.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def add(x, y):
    kept = torch.cat([torch.zeros(1).expand(1 << 26) for _ in range(16)])
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 256),)](kept, y, out, x.numel(), BLOCK=256)
    return out
