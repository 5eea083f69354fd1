"""Count in Python, and hand the numbers over as small constants beside a decoy launch.

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
    numbers = list(range(n))
    parts = [torch.tensor(numbers[i : i + 32], dtype=torch.int32) for i in range(0, n, 32)]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int32)
