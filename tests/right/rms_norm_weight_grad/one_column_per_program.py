import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, dy, rstd, out, x_stride, dy_stride, m, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        r = start + tl.arange(0, BLOCK).to(tl.int64)
        a = tl.load(x + r * x_stride + column, mask=r < m, other=0.0).to(tl.float32)
        b = tl.load(dy + r * dy_stride + column, mask=r < m, other=0.0).to(tl.float32)
        sums += a * b * tl.load(rstd + r, mask=r < m, other=0.0)
    tl.store(out + column, tl.sum(sums, axis=0))


def rms_norm_weight_grad(x, dy, rstd):
    m, n = x.shape
    out = torch.empty(n, dtype=torch.float32, device=x.device)
    if n:
        kernel[(n,)](x, dy, rstd, out, x.stride(0), dy.stride(0), m, BLOCK=256)
    return out
