import torch
import triton
import triton.language as tl


@triton.jit
def k(out_ptr):
    p = tl.program_id(0)
    tl.store(out_ptr + p, p)


def first_kernel(n):
    out = -torch.ones(n, dtype=torch.int32, device="cuda" if torch.cuda.is_available() else "cpu")
    k[(n,)](out)
    return out
