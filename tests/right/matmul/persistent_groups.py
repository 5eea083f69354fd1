import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, am, ak, bk, bn,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr,
):
    down, across = tl.cdiv(m, M), tl.cdiv(n, N)
    for tile in range(tl.program_id(0), down * across, tl.num_programs(0)):
        row, column = tl.swizzle2d(tile // across, tile % across, down, across, GROUP)
        i = (row * M + tl.arange(0, M)).to(tl.int64)
        j = (column * N + tl.arange(0, N)).to(tl.int64)
        p = tl.arange(0, K).to(tl.int64)
        a = a_ptr + i[:, None] * am + p[None, :] * ak
        b = b_ptr + p[:, None] * bk + j[None, :] * bn
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            x = tl.load(a, (i[:, None] < m) & (p[None, :] < k - start), 0.0)
            y = tl.load(b, (p[:, None] < k - start) & (j[None, :] < n), 0.0)
            acc = tl.dot(x, y, acc, input_precision="ieee")
            a += K * ak
            b += K * bk
        tl.store(c_ptr + i[:, None] * n + j[None, :], acc, (i[:, None] < m) & (j[None, :] < n))


def matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tiles = triton.cdiv(m, 64) * triton.cdiv(n, 32)
    kernel[(min(tiles, 264),)](a, b, c, m, n, k, *a.stride(), *b.stride(), M=64, N=32, K=32, GROUP=4)
    return c
