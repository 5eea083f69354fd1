import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, keep, out, stride, m, n, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R).to(tl.int64)
    total = tl.zeros((R, C), tl.float32)
    count = tl.zeros((R, C), tl.float32)
    for start in range(0, n, C):
        c = start + tl.arange(0, C)
        ok = (r < m)[:, None] & (c < n)[None, :]
        kept = tl.load(keep + r[:, None] * n + c[None, :], mask=ok, other=0) != 0
        value = tl.load(x + r[:, None] * stride + c[None, :], mask=ok & kept, other=0.0)
        total += value.to(tl.float32)
        count += kept.to(tl.float32)
    many = tl.sum(count, axis=1)
    tl.store(out + r, tl.sum(total, axis=1) / tl.where(many == 0, 1.0, many), mask=r < m)


def masked_mean(x, keep):
    m, n = x.shape
    out = torch.empty((m,), dtype=torch.float32, device=x.device)
    if m:
        kernel[(triton.cdiv(m, 4),)](x, keep, out, x.stride(0), m, n, R=4, C=128)
    return out
