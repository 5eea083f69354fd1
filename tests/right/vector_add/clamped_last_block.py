import torch
import triton
import triton.language as tl


@triton.jit
def overlapping(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # the last block is moved back, so that it ends with the tensor: no mask is needed
    start = tl.minimum(tl.program_id(0) * BLOCK, n - BLOCK)
    offs = start + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) + tl.load(y_ptr + offs))


@triton.jit
def short(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask) + tl.load(y_ptr + offs, mask), mask)


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    if n >= 512:
        overlapping[(triton.cdiv(n, 512),)](x, y, out, n, BLOCK=512)
    elif n > 0:
        short[(1,)](x, y, out, n, BLOCK=512)
    return out
