import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a, b, c, m, n, k, am, ak, bk, bn, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, EVEN: tl.constexpr
):
    across = tl.cdiv(n, N)
    i = (tl.program_id(0) // across * M + tl.arange(0, M)).to(tl.int64)[:, None]
    j = (tl.program_id(0) % across * N + tl.arange(0, N)).to(tl.int64)[None, :]
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        p = (start + tl.arange(0, K)).to(tl.int64)
        in_a, in_b = i < m, j < n
        if not EVEN:
            in_a = in_a & (p[None, :] < k)
            in_b = in_b & (p[:, None] < k)
        x = tl.load(a + i * am + p[None, :] * ak, mask=in_a, other=0.0)
        y = tl.load(b + p[:, None] * bk + j * bn, mask=in_b, other=0.0)
        acc = tl.dot(x, y, acc, input_precision="tf32x3")
    tl.store(c + i * n + j, acc, (i < m) & (j < n))


def matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)
    kernel[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), M=64, N=64, K=32, EVEN=k % 32 == 0)
    return c
