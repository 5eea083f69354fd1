import torch
import triton
import triton.language as tl

from workshop import DEVICE


@triton.jit
def ids(out_ptr):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, pid)


results = {}


def first_kernel(n):
    if n not in results:
        results[n] = torch.empty(n, dtype=torch.int32, device=DEVICE)
        ids[(n,)](results[n])
    return results[n]
