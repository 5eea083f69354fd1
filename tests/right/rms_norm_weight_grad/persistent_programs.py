import torch
import triton
import triton.language as tl

from workshop import device


@triton.jit
def partial(x, dy, rstd, parts, x_stride, dy_stride, m, n, BLOCK: tl.constexpr):
    mine = parts + tl.program_id(0).to(tl.int64) * n
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        for row in range(tl.program_id(0).to(tl.int64), m, tl.num_programs(0)):
            a = tl.load(x + row * x_stride + c, mask=c < n, other=0.0).to(tl.float32)
            b = tl.load(dy + row * dy_stride + c, mask=c < n, other=0.0).to(tl.float32)
            total += a * b * tl.load(rstd + row)
        tl.store(mine + c, total, mask=c < n)


@triton.jit
def merge(parts, out, many, n, P: tl.constexpr):
    column = tl.program_id(0)
    total = tl.zeros((P,), tl.float32)
    for start in range(0, many, P):
        p = start + tl.arange(0, P).to(tl.int64)
        total += tl.load(parts + p * n + column, mask=p < many, other=0.0)
    tl.store(out + column, tl.sum(total, axis=0))


def rms_norm_weight_grad(x, dy, rstd):
    m, n = x.shape
    programs = max(1, min(m, device().multiprocessors))
    parts = torch.empty((programs, n), dtype=torch.float32, device=x.device)
    out = torch.empty(n, dtype=torch.float32, device=x.device)
    if n:
        partial[(programs,)](x, dy, rstd, parts, x.stride(0), dy.stride(0), m, n, BLOCK=512)
        merge[(n,)](parts, out, programs, n, P=64)
    return out
