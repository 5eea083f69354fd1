import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a, b, c, m, n, k, am, ak, bk, bn, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * M + tl.arange(0, M)
    j = tl.program_id(1).to(tl.int64) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        p = (start + tl.arange(0, K)).to(tl.int64)
        x = tl.load(a + i[:, None] * am + p[None, :] * ak, (i[:, None] < m) & (p[None, :] < k), 0.0)
        y = tl.load(b + p[:, None] * bk + j[None, :] * bn, (p[:, None] < k) & (j[None, :] < n), 0.0)
        acc += tl.dot(x, y, allow_tf32=False)
    tl.store(c + i[:, None] * n + j[None, :], acc.to(c.dtype.element_ty), (i[:, None] < m) & (j[None, :] < n))


def matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = a.new_empty((m, n))
    grid = triton.cdiv(m, 32), triton.cdiv(n, 64)
    kernel[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), M=32, N=64, K=64)
    return c
