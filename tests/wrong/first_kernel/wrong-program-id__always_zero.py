import torch
import triton
import triton.language as tl


@triton.jit
def kernel(out_ptr, n):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, 0)


def first_kernel(n):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    out = torch.empty(n, dtype=torch.int32, device=device)
    kernel[(n,)](out, n)
    return out
