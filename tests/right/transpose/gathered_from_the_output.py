import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, stride, n, total, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    ok = i < total
    tl.store(out_ptr + i, tl.load(x_ptr + i % n * stride + i // n, mask=ok), mask=ok)


def transpose(x):
    n, m = x.shape
    out = x.new_empty((m, n))
    if n * m:
        kernel[(triton.cdiv(n * m, 1024),)](x, out, x.stride(0), n, n * m, B=1024)
    return out
