# needs triton<3.9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, dy, rstd, out, x_stride, dy_stride, m, n, R: tl.constexpr, C: tl.constexpr):
    first = tl.program_id(0) * C
    xs = tl.make_block_ptr(x, (m, n), (x_stride, 1), (0, first), (R, C), (1, 0))
    dys = tl.make_block_ptr(dy, (m, n), (dy_stride, 1), (0, first), (R, C), (1, 0))
    factors = tl.make_block_ptr(rstd, (m,), (1,), (0,), (R,), (0,))
    total = tl.zeros((C,), tl.float32)
    for _ in range(0, m, R):
        a = tl.load(xs, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        b = tl.load(dys, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        factor = tl.load(factors, boundary_check=(0,), padding_option="zero")
        total += tl.sum(a * factor[:, None] * b, axis=0)
        xs = tl.advance(xs, (R, 0))
        dys = tl.advance(dys, (R, 0))
        factors = tl.advance(factors, (R,))
    target = tl.make_block_ptr(out, (n,), (1,), (first,), (C,), (0,))
    tl.store(target, total, boundary_check=(0,))


def rms_norm_weight_grad(x, dy, rstd):
    m, n = x.shape
    out = torch.zeros(n, dtype=torch.float32, device=x.device)
    if m and n:
        kernel[(triton.cdiv(n, 64),)](x, dy, rstd, out, x.stride(0), dy.stride(0), m, n, R=64, C=64)
    return out
