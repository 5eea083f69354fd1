import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, out, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < total) + tl.load(y + at, at < total), at < total)


def add_2d(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 512),)](x, y, out, out.numel(), BLOCK=512)
    return out
