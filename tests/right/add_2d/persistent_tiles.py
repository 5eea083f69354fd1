import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, out, xr, xc, yr, yc, m, n, R: tl.constexpr, C: tl.constexpr):
    across = tl.cdiv(n, C)
    for tile in range(tl.program_id(0), tl.cdiv(m, R) * across, tl.num_programs(0)):
        i = (tile // across * R + tl.arange(0, R)).to(tl.int64)[:, None]
        j = (tile % across * C + tl.arange(0, C)).to(tl.int64)[None, :]
        ok = (i < m) & (j < n)
        total = tl.load(x + i * xr + j * xc, ok) + tl.load(y + i * yr + j * yc, ok)
        tl.store(out + i * n + j, total, ok)


def add_2d(x, y):
    m, n = x.shape
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(64,)](x, y, out, *x.stride(), *y.stride(), m, n, R=8, C=128)
    return out
