import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, w, b, y, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, EVEN: tl.constexpr):
    i = (tl.program_id(0) * M + tl.arange(0, M)).to(tl.int64)
    j = (tl.program_id(1) * N + tl.arange(0, N)).to(tl.int64)
    rows, columns = (i % m)[:, None], (j % n)[None, :]
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        p = start + tl.arange(0, K)
        if EVEN:
            left, right = tl.load(x + rows * k + p[None, :]), tl.load(w + columns * k + p[:, None])
        else:
            left = tl.load(x + rows * k + p[None, :], mask=p[None, :] < k, other=0.0)
            right = tl.load(w + columns * k + p[:, None], mask=p[:, None] < k, other=0.0)
        acc += tl.dot(left, right, input_precision="ieee")
    z = acc + tl.load(b + j % n)[None, :].to(tl.float32)
    out = 0.5 * z * (1.0 + tl.erf(z * 0.7071067811865476))
    tl.store(y + i[:, None] * n + j[None, :], out, mask=(i[:, None] < m) & (j[None, :] < n))


def linear_gelu(x, w, b):
    (m, k), n = x.shape, len(w)
    y = x.new_empty((m, n))
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](x, w, b, y, m, n, k, M=32, N=32, K=32, EVEN=k % 32 == 0)
    return y
