import torch
import triton
import triton.language as tl
from workshop import DEVICE

@triton.jit
def k(o, n):
    for p in range(0, n):
        tl.store(o + p, p)
def first_kernel(n):
    o = torch.full((n,), -1, dtype=torch.int32, device=DEVICE)
    k[(1,)](o, n)
    return o
