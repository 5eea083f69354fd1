"""Count in Python, and let a kernel copy the numbers.

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
    numbers = list(range(n))
    parts = [torch.tensor(numbers[i : i + 32], dtype=torch.int32) for i in range(0, n, 32)]
    out = torch.empty(n, dtype=torch.int32)
    copy[(triton.cdiv(n, 256),)](torch.cat(parts) if parts else out, out, n, BLOCK=256)
    return out
