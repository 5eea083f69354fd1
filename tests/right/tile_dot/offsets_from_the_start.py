import torch
import triton
import triton.language as tl


@triton.jit
def tile_kernel(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        along = start + tl.arange(0, K)
        a_mask = (rows[:, None] < m) & (along[None, :] < k)
        b_mask = (along[:, None] < k) & (columns[None, :] < n)
        a = tl.load(a_ptr + rows[:, None] * k + along[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + along[:, None] * n + columns[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], acc, mask=c_mask)


def tile_dot(a, b):
    m, k = a.shape
    k, n = b.shape
    c = torch.empty((m, n), dtype=torch.float32, device=a.device)
    M = max(16, triton.next_power_of_2(m))
    N = max(16, triton.next_power_of_2(n))
    tile_kernel[(1,)](a, b, c, m, n, k, M=M, N=N, K=32)
    return c
