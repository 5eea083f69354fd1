import torch
import triton
import triton.language as tl


@triton.jit
def product(x, w, z, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * M + tl.arange(0, M)
    j = tl.program_id(1).to(tl.int64) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        p = start + tl.arange(0, K)
        left = tl.load(x + i[:, None] * k + p[None, :], (i[:, None] < m) & (p[None, :] < k), 0.0)
        right = tl.load(w + j[None, :] * k + p[:, None], (j[None, :] < n) & (p[:, None] < k), 0.0)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    tl.store(z + i[:, None] * n + j[None, :], acc, (i[:, None] < m) & (j[None, :] < n))


@triton.jit
def activation(z, b, y, n, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(z + at, at < total, 0.0) + tl.load(b + at % n, at < total, 0.0)
    tl.store(y + at, 0.5 * value * (1 + tl.erf(value * 0.7071067811865476)), at < total)


def linear_gelu(x, w, b):
    (m, k), n = x.shape, w.shape[0]
    z = torch.empty((m, n), dtype=torch.float32, device=x.device)
    product[(triton.cdiv(m, 64), triton.cdiv(n, 64))](x, w, z, m, n, k, M=64, N=64, K=32)
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    activation[(triton.cdiv(m * n, 1024),)](z, b, y, n, m * n, BLOCK=1024)
    return y
