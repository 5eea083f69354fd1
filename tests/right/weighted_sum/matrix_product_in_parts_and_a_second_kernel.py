import torch
import triton
import triton.language as tl


@triton.jit
def products(p, v, parts, t, d, length, K: tl.constexpr, C: tl.constexpr):
    across = tl.cdiv(d, C)
    part = (tl.program_id(0) // across).to(tl.int64)
    c = tl.program_id(0) % across * C + tl.arange(0, C)
    end = tl.minimum(part * length + length, t)
    sums = tl.zeros((16, C), tl.float32)
    for start in range(part * length, end, K):
        k = start + tl.arange(0, K)
        # tl.dot needs 16 rows: the weights are in the first, and the others are 0.
        first_row = (tl.arange(0, 16)[:, None] == 0) & (k[None, :] < end)
        weights = tl.load(p + k[None, :] + tl.zeros((16, 1), tl.int64), mask=first_row, other=0.0)
        values = tl.load(v + k[:, None] * d + c[None, :], mask=(k[:, None] < end) & (c[None, :] < d), other=0.0)
        sums = tl.dot(weights, values, sums, input_precision="ieee")
    tl.store(parts + part * d + c, tl.sum(sums, axis=0), mask=c < d)


@triton.jit
def merge(parts, out, many, d, M: tl.constexpr, C: tl.constexpr):
    c = tl.program_id(0) * C + tl.arange(0, C)
    sums = tl.zeros((C,), tl.float32)
    for start in range(0, many, M):
        m = start + tl.arange(0, M).to(tl.int64)
        ok = (m[:, None] < many) & (c[None, :] < d)
        sums += tl.sum(tl.load(parts + m[:, None] * d + c[None, :], mask=ok, other=0.0), axis=0)
    tl.store(out + c, sums, mask=c < d)


def weighted_sum(p, v):
    t, d = v.shape
    out = torch.empty(d, dtype=torch.float32, device=v.device)
    if d == 0:
        return out
    length = max(128, 32 * triton.cdiv(t, 32 * 512))
    many = triton.cdiv(t, length)
    parts = torch.empty((many, d), dtype=torch.float32, device=v.device)
    if many:
        products[(many * triton.cdiv(d, 32),)](p, v, parts, t, d, length, K=32, C=32)
    merge[(triton.cdiv(d, 64),)](parts, out, many, d, M=16, C=64)
    return out
