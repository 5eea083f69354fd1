import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, out, xr, xc, yr, yc, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK).to(tl.int64)
        ok = at < n
        total = tl.load(x + row * xr + at * xc, ok) + tl.load(y + row * yr + at * yc, ok)
        tl.store(out + row * n + at, total, ok)


def add_2d(x, y):
    out = x.new_empty(x.shape)
    if out.numel():
        kernel[(x.shape[0],)](x, y, out, *x.stride(), *y.stride(), x.shape[1], BLOCK=512)
    return out
