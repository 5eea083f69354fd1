import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, out, n, m, R: tl.constexpr, C: tl.constexpr):
    tiles = tl.cdiv(n, R) * tl.cdiv(m, C)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        r = tile // tl.cdiv(m, C) * R + tl.arange(0, R)[:, None]
        c = tile % tl.cdiv(m, C) * C + tl.arange(0, C)[None, :]
        s = tl.load(x + r, mask=r < n) + tl.load(y + c, mask=c < m)
        tl.store(out + r * m + c, s, mask=(r < n) & (c < m))


def outer_add(x, y):
    n, m = x.numel(), y.numel()
    out = torch.empty((n, m), dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        kernel[(min(64, triton.cdiv(n, 8) * triton.cdiv(m, 64)),)](x, y, out, n, m, R=8, C=64)
    return out
