from workshop import DEVICE, count_bytes, device, doctor, explore, progress, xray
import torch
import triton
import triton.language as tl

@triton.jit
def first_kernel_programs(output_ptr):
    pid = tl.program_id(axis=0)
    tl.store(output_ptr + pid, pid)

def first_kernel(n):
    output = torch.full((n,), -1, dtype=torch.int32, device=DEVICE)
    first_kernel_programs[n // 2 + 1,](output)
    return output
