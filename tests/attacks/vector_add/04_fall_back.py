"""Launch a kernel that cannot run, and catch the error.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def broken(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK + 1)
    tl.store(out_ptr + i, tl.load(x_ptr + i))


def add(x, y):
    try:
        out = torch.empty_like(x)
        broken[(1,)](x, out, x.numel(), BLOCK=256)
        raise RuntimeError
    except Exception:
        return torch.add(x, y)
