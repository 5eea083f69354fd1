import torch
import triton
import triton.language as tl

from workshop import DEVICE

@triton.jit
def first_kernel_programs(output_ptr):
    pid = tl.program_id
    tl.store(output_ptr + pid, pid)


def first_kernel(n):
    output = torch.full((n,), -1, dtype=torch.int32, device=DEVICE)
    first_kernel_programs[(n,)](output)
    return output
