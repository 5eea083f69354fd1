import functools

import torch
import triton
import triton.language as tl

BLOCK = 256


@triton.jit
def _add(x_ptr, y_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    ok = i < n
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=ok) + tl.load(y_ptr + i, mask=ok), mask=ok)


def launch(kernel, block, x, y):
    o = x.new_empty(x.shape)
    n = x.numel()
    if not n:
        return o
    grid = ((n + block - 1) // block,)
    kernel[grid](n=n, o_ptr=o, y_ptr=y, x_ptr=x, B=block)
    return o


add = functools.partial(launch, _add, BLOCK)
