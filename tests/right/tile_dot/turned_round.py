import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The transposed product: cT = bT aT."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    acc = tl.zeros((N, M), tl.float32)
    for start in range(0, k, K):
        p = start + tl.arange(0, K)
        a = tl.load(a_ptr + i[:, None] * k + p[None, :], (i[:, None] < m) & (p[None, :] < k), 0.0)
        b = tl.load(b_ptr + p[:, None] * n + j[None, :], (p[:, None] < k) & (j[None, :] < n), 0.0)
        acc = tl.dot(tl.trans(b), a.T, acc, out_dtype=tl.float32)
    tl.store(c_ptr + i[:, None] * n + j[None, :], tl.trans(acc), (i[:, None] < m) & (j[None, :] < n))


def tile_dot(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=torch.float32, device=a.device)
    high, wide = max(16, triton.next_power_of_2(m)), max(16, triton.next_power_of_2(n))
    kernel[(1,)](a, b, c, m, n, k, M=high, N=wide, K=16)
    return c
