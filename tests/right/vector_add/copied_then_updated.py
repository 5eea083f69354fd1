import torch
import triton
import triton.language as tl


@triton.jit
def accumulate(acc_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.load(acc_ptr + i, mask=i < n)
    acc = acc + tl.load(y_ptr + i, mask=i < n)
    tl.store(acc_ptr + i, acc, mask=i < n)


def add(x, y):
    result = x.clone()
    if result.numel():
        accumulate[(triton.cdiv(result.numel(), 128), 1, 1)](result, y, result.numel(), BLOCK=128)
    return result
