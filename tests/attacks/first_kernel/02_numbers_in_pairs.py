"""Count in Python, two numbers to an int64, and let a kernel copy their halves.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy(numbers_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(numbers_ptr + i, mask=i < n), mask=i < n)


def first_kernel(n):
    pairs = torch.tensor([i | (i + 1) << 32 for i in range(0, n + 1, 2)], dtype=torch.int64)
    out = torch.empty(n, dtype=torch.int32)
    copy[(triton.cdiv(n, 256),)](pairs.view(torch.int32), out, n, BLOCK=256)
    return out
