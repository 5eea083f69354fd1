import torch
import triton
import triton.language as tl


@triton.jit
def gelu(z):
    return z * 0.5 * (1.0 + tl.erf(z * 0.70710678))


@triton.jit
def kernel(x, w, b, y, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    across = tl.cdiv(n, N)
    i = (tl.program_id(0) // across * M + tl.arange(0, M)).to(tl.int64)
    j = (tl.program_id(0) % across * N + tl.arange(0, N)).to(tl.int64)
    acc = tl.zeros((N, M), tl.float32)
    for start in range(0, k, K):
        p = start + tl.arange(0, K)
        ours = tl.load(w + j[:, None] * k + p[None, :], (j[:, None] < n) & (p[None, :] < k), 0.0)
        theirs = tl.load(x + i[None, :] * k + p[:, None], (i[None, :] < m) & (p[:, None] < k), 0.0)
        acc += tl.dot(ours, theirs, input_precision="ieee")
    z = acc + tl.load(b + j, j < n, 0.0)[:, None]
    tl.store(y + i[:, None] * n + j[None, :], tl.trans(gelu(z)), (i[:, None] < m) & (j[None, :] < n))


def linear_gelu(x, w, b):
    (m, k), n = x.shape, w.shape[0]
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(m, 64) * triton.cdiv(n, 64),)](x, w, b, y, m, n, k, M=64, N=64, K=32)
    return y
