import torch
import triton
import triton.language as tl


@triton.jit
def partial(x, parts, stride, n, m, R: tl.constexpr, C: tl.constexpr):
    part = tl.program_id(1)
    r = part * R + tl.arange(0, R).to(tl.int64)
    c = tl.program_id(0) * C + tl.arange(0, C)
    ok = (r[:, None] < n) & (c[None, :] < m)
    tile = tl.load(x + r[:, None] * stride + c[None, :], mask=ok, other=0.0).to(tl.float32)
    tl.store(parts + part.to(tl.int64) * m + c, tl.sum(tile, axis=0), mask=c < m)


@triton.jit
def merge(parts, out, many, m, C: tl.constexpr):
    c = tl.program_id(0) * C + tl.arange(0, C)
    total = tl.zeros((C,), tl.float32)
    for part in range(many):
        total += tl.load(parts + part.to(tl.int64) * m + c, mask=c < m, other=0.0)
    tl.store(out + c, total, mask=c < m)


def column_sum(x):
    n, m = x.shape
    rows = max(64, triton.next_power_of_2(triton.cdiv(n, 4096)))
    rows = min(rows, 1024)
    many = triton.cdiv(n, rows)
    parts = torch.empty((many, m), dtype=torch.float32, device=x.device)
    out = torch.empty(m, dtype=torch.float32, device=x.device)
    if m == 0:
        return out
    if n:
        partial[(triton.cdiv(m, 16), many)](x, parts, x.stride(0), n, m, R=rows, C=16)
    merge[(triton.cdiv(m, 128),)](parts, out, many, m, C=128)
    return out
