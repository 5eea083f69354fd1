import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, out, m, B: tl.constexpr):
    r = tl.program_id(0)
    a = tl.load(x + r)
    for start in range(0, m, B):
        c = start + tl.arange(0, B)
        tl.store(out + r.to(tl.int64) * m + c, a + tl.load(y + c, mask=c < m), mask=c < m)


def outer_add(x, y):
    out = x.new_empty((len(x), len(y)))
    if out.numel():
        kernel[(len(x),)](x, y, out, len(y), B=512)
    return out
