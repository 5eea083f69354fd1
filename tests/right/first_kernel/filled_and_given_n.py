import torch
import triton
import triton.language as tl

from workshop import DEVICE


@triton.jit
def number(out_ptr, n, STEP: tl.constexpr, OFFSET: tl.constexpr):
    pid = tl.program_id(0) * STEP + OFFSET
    tl.store(out_ptr + pid, pid, mask=pid < n)


def first_kernel(n):
    out = torch.nn.functional.pad(torch.full((n,), -7, dtype=torch.int32, device=DEVICE), (0, 3), value=-1)
    number[(triton.cdiv(n, 2),)](out, n, STEP=2, OFFSET=0)
    number[(triton.cdiv(n, 2),)](out, n, STEP=2, OFFSET=1, num_warps=1)
    return out[:n].contiguous()
