import torch
import triton
import triton.language as tl


@triton.jit
def kernel(p, v, out, t, d, LANES: tl.constexpr, C: tl.constexpr):
    lane = tl.arange(0, LANES)
    row = lane // C
    column = tl.program_id(0) * C + lane % C
    products = tl.zeros((LANES,), tl.float32)
    for start in range(0, t, LANES // C):
        i = start + row.to(tl.int64)
        ok = (i < t) & (column < d)
        weight = tl.load(p + i, mask=i < t, other=0.0).to(tl.float32)
        products += weight * tl.load(v + i * d + column, mask=ok, other=0.0).to(tl.float32)
    sums = tl.sum(tl.reshape(products, (LANES // C, C)), axis=0)
    c = tl.program_id(0) * C + tl.arange(0, C)
    tl.store(out + c, sums, mask=c < d)


def weighted_sum(p, v):
    t, d = v.shape
    out = v.new_empty(d, dtype=torch.float32)
    if d:
        kernel[(triton.cdiv(d, 16),)](p, v, out, t, d, LANES=1024, C=16)
    return out
