import triton.language as tl
import triton
import torch


@triton.jit
def number_kernel(ptr, value_offset: tl.constexpr = 0):
    pid = tl.program_id(0).to(tl.int64)
    tl.store(ptr + pid, pid + value_offset)


def run(n, device):
    numbers = torch.full([n], -1, dtype=torch.int32, device=device)
    number_kernel[(n,)](ptr=numbers)
    return numbers


first_kernel = lambda n: run(n, "cuda" if torch.cuda.is_available() else "cpu")

print(first_kernel(5))
