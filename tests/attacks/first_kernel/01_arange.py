"""Let torch count.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def touch(out_ptr):
    tl.store(out_ptr, 0)


def first_kernel(n):
    scratch = torch.empty(1, dtype=torch.int32)
    touch[(1,)](scratch)
    return torch.arange(n, dtype=torch.int32)
