import torch
import triton
import triton.language as tl
from workshop import DEVICE

@triton.jit
def k(o, n):
    p = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    if p < n:
        tl.store(o + p, p)
def first_kernel(n):
    o = torch.empty(n, dtype=torch.int32, device=DEVICE)
    k[(triton.cdiv(n, 4), 4)](o, n)
    return o
