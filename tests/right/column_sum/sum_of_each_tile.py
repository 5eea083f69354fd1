import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, stride, n, m, R: tl.constexpr, C: tl.constexpr):
    c = tl.program_id(0) * C + tl.arange(0, C)
    total = tl.zeros((C,), tl.float32)
    for start in range(0, n, R):
        r = start + tl.arange(0, R).to(tl.int64)
        ok = (r[:, None] < n) & (c[None, :] < m)
        tile = tl.load(x + r[:, None] * stride + c[None, :], mask=ok, other=0.0)
        total += tl.sum(tile.to(tl.float32), axis=0)
    tl.store(out + c, total, mask=c < m)


def column_sum(x):
    n, m = x.shape
    out = torch.zeros(m, dtype=torch.float32, device=x.device)
    if m and n:
        kernel[(triton.cdiv(m, 32),)](x, out, x.stride(0), n, m, R=64, C=32)
    return out
