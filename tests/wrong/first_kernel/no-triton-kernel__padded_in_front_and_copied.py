import torch
import triton
import triton.language as tl


@triton.jit
def copy(numbers_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(numbers_ptr + i, mask=i < n), mask=i < n)


def first_kernel(n):
    numbers = torch.zeros(0, dtype=torch.int32)
    for i in reversed(range(n)):
        numbers = torch.constant_pad_nd(numbers, [1, 0], i)
    out = torch.empty(n, dtype=torch.int32)
    copy[(triton.cdiv(n, 128),)](numbers, out, n, BLOCK=128)
    return out
