"""Fill a tensor for each number, join them, and let a kernel copy the result.

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
    numbers = torch.cat([torch.full((1,), i, dtype=torch.int32) for i in range(n)])
    out = torch.empty(n, dtype=torch.int32)
    copy[(triton.cdiv(n, 256),)](numbers, out, n, BLOCK=256)
    return out
