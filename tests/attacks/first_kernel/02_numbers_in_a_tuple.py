"""Hand the kernel all numbers as one argument.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def unpack(numbers: tl.constexpr, out_ptr, n: tl.constexpr):
    for i in tl.static_range(n):
        tl.store(out_ptr + i, numbers[i])


def first_kernel(n):
    out = torch.empty(n, dtype=torch.int32)
    unpack[(1,)](tuple(range(n)), out, n)
    return out
