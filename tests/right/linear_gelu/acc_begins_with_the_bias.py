import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, w, b, y, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(1).to(tl.int64) * M + tl.arange(0, M)
    j = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    acc = tl.load(b + j, j < n, 0.0).to(tl.float32)[None, :] + tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        p = start + tl.arange(0, K)
        left = tl.load(x + i[:, None] * k + p[None, :], (i[:, None] < m) & (p[None, :] < k), 0.0)
        right = tl.load(w + j[:, None] * k + p[None, :], (j[:, None] < n) & (p[None, :] < k), 0.0)
        acc = tl.dot(left, right.T, acc, input_precision="ieee")
    half = 0.5 * acc
    out = half + half * tl.math.erf(acc / 1.4142135623730951)
    tl.store(y + i[:, None] * n + j[None, :], out, (i[:, None] < m) & (j[None, :] < n))


def linear_gelu(x, w, b):
    (m, k), n = x.shape, w.shape[0]
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(n, 64), triton.cdiv(m, 32))](x, w, b, y, m, n, k, M=32, N=64, K=32)
    return y
