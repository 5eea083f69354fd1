import torch
import triton
import triton.language as tl

from workshop import DEVICE


@triton.jit
def first_kernel_programs(output_ptr, counter_ptr):
    old = tl.atomic_add(counter_ptr, 1)
    pid = tl.program_id(0)
    tl.store(output_ptr + old, old)


counter = torch.zeros(1, dtype=torch.int32, device=DEVICE)


def first_kernel(n):
    output = torch.full((n,), -1, dtype=torch.int32, device=DEVICE)
    first_kernel_programs[(n,)](output, counter)
    return output
