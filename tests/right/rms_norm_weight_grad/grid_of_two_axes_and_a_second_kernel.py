import torch
import triton
import triton.language as tl


@triton.jit
def partial(x, dy, rstd, parts, x_stride, dy_stride, m, n, height, R: tl.constexpr, C: tl.constexpr):
    c = tl.program_id(0) * C + tl.arange(0, C)
    part = tl.program_id(1).to(tl.int64)
    end = tl.minimum(part * height + height, m)
    total = tl.zeros((C,), tl.float32)
    for start in range(part * height, end, R):
        r = start + tl.arange(0, R)
        ok = (r < end)[:, None] & (c < n)[None, :]
        a = tl.load(x + (r * x_stride)[:, None] + c[None, :], mask=ok, other=0.0).to(tl.float32)
        b = tl.load(dy + (r * dy_stride)[:, None] + c[None, :], mask=ok, other=0.0).to(tl.float32)
        total += tl.sum(a * b * tl.load(rstd + r, mask=r < end, other=0.0)[:, None], axis=0)
    tl.store(parts + part * n + c, total, mask=c < n)


@triton.jit
def merge(parts, out, many, n, P: tl.constexpr, C: tl.constexpr):
    p = tl.arange(0, P).to(tl.int64)[:, None]
    c = tl.program_id(0) * C + tl.arange(0, C)
    tile = tl.load(parts + p * n + c[None, :], mask=(p < many) & (c[None, :] < n), other=0.0)
    tl.store(out + c, tl.sum(tile, axis=0), mask=c < n)


def rms_norm_weight_grad(x, dy, rstd):
    m, n = x.shape
    if m == 0 or n == 0:
        return torch.zeros(n, dtype=torch.float32, device=x.device)
    many = min(64, triton.cdiv(m, 32))
    parts = torch.empty((many, n), dtype=torch.float32, device=x.device)
    out = torch.empty(n, dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(n, 128), many)
    partial[grid](x, dy, rstd, parts, x.stride(0), dy.stride(0), m, n, triton.cdiv(m, many), R=16, C=128)
    merge[(triton.cdiv(n, 32),)](parts, out, many, n, P=64, C=32)
    return out
