import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, y_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    across = tl.cdiv(n, N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, M) * across, tl.num_programs(0)):
        i = (tile // across * M + tl.arange(0, M)).to(tl.int64)[:, None]
        j = (tile % across * N + tl.arange(0, N)).to(tl.int64)[None, :]
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            p = start + tl.arange(0, K)
            x = tl.load(x_ptr + i * k + p[None, :], mask=(i < m) & (p[None, :] < k), other=0.0)
            w = tl.load(w_ptr + j * k + p[:, None], mask=(j < n) & (p[:, None] < k), other=0.0)
            acc = tl.dot(x, w, acc, input_precision="ieee")
        z = acc + tl.load(b_ptr + j, mask=j < n, other=0.0)
        tl.store(y_ptr + i * n + j, 0.5 * z * (1 + libdevice.erf(z * 0.7071067811865476)), mask=(i < m) & (j < n))


def linear_gelu(x, w, b):
    (m, k), n = x.shape, w.shape[0]
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    tiles = triton.cdiv(m, 32) * triton.cdiv(n, 64)
    kernel[(min(tiles, 100),)](x, w, b, y, m, n, k, M=32, N=64, K=64)
    return y
