import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, stride, n, m, R: tl.constexpr, C: tl.constexpr):
    across = tl.cdiv(m, C)
    r = tl.program_id(0) // across * R + tl.arange(0, R).to(tl.int64)
    c = tl.program_id(0) % across * C + tl.arange(0, C).to(tl.int64)
    tile = tl.load(x_ptr + r[:, None] * stride + c[None, :], mask=(r < n)[:, None] & (c < m)[None, :])
    tl.store(out_ptr + c[:, None] * n + r[None, :], tl.trans(tile), mask=(c < m)[:, None] & (r < n)[None, :])


def transpose(x):
    n, m = x.shape
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(n, 64) * triton.cdiv(m, 16),)](x, out, x.stride(0), n, m, R=64, C=16)
    return out
