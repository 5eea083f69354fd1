import torch
import triton
import triton.language as tl


@triton.jit
def partial(x, dy, rstd, parts, x_stride, dy_stride, m, n, R: tl.constexpr, C: tl.constexpr):
    across = tl.cdiv(n, C)
    part = (tl.program_id(0) // across).to(tl.int64)
    r = part * R + tl.arange(0, R)
    c = tl.program_id(0) % across * C + tl.arange(0, C)
    ok = (r[:, None] < m) & (c[None, :] < n)
    a = tl.load(x + r[:, None] * x_stride + c[None, :], mask=ok, other=0.0).to(tl.float32)
    b = tl.load(dy + r[:, None] * dy_stride + c[None, :], mask=ok, other=0.0).to(tl.float32)
    factor = tl.load(rstd + r, mask=r < m, other=0.0)
    tl.store(parts + part * n + c, tl.sum(a * b * factor[:, None], axis=0), mask=c < n)


@triton.jit
def add_second_half(parts, left, elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    ok = i < elements
    total = tl.load(parts + i, mask=ok) + tl.load(parts + left + i, mask=ok)
    tl.store(parts + i, total, mask=ok)


def rms_norm_weight_grad(x, dy, rstd):
    m, n = x.shape
    if m == 0 or n == 0:
        return torch.zeros(n, dtype=torch.float32, device=x.device)
    many = triton.cdiv(m, 64)
    parts = torch.empty((many, n), dtype=torch.float32, device=x.device)
    partial[(many * triton.cdiv(n, 32),)](x, dy, rstd, parts, x.stride(0), dy.stride(0), m, n, R=64, C=32)
    while many > 1:
        left = (many + 1) // 2
        elements = (many - left) * n
        add_second_half[(triton.cdiv(elements, 256),)](parts, left * n, elements, BLOCK=256)
        many = left
    return parts[0].clone()
