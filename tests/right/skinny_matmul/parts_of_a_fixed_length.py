import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    x_ptr, w_ptr, parts_ptr, m, n, k, num_n, LENGTH: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    pid = tl.program_id(0)
    part = (pid // num_n).to(tl.int64)
    rows = tl.arange(0, 16).to(tl.int64)
    cols = pid % num_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((16, BLOCK_N), tl.float32)
    for i in range(LENGTH // BLOCK_K):
        ks = part * LENGTH + i * BLOCK_K + tl.arange(0, BLOCK_K)
        x_mask = (rows[:, None] < m) & (ks[None, :] < k)
        w_mask = (ks[:, None] < k) & (cols[None, :] < n)
        x = tl.load(x_ptr + rows[:, None] * k + ks[None, :], mask=x_mask, other=0.0)
        w = tl.load(w_ptr + ks[:, None] * n + cols[None, :], mask=w_mask, other=0.0)
        acc += tl.dot(x, w, input_precision="ieee")
    offsets = (part * m + rows[:, None]) * n + cols[None, :]
    tl.store(parts_ptr + offsets, acc, mask=(rows[:, None] < m) & (cols[None, :] < n))


@triton.jit
def sum_kernel(parts_ptr, y_ptr, parts, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(parts):
        total += tl.load(parts_ptr + i * size + offsets, mask=mask, other=0.0)
    tl.store(y_ptr + offsets, total, mask=mask)


def skinny_matmul(x, w):
    m, k = x.shape
    n = w.shape[1]
    num_n = triton.cdiv(n, 64)
    parts = triton.cdiv(k, 512)
    partial = torch.empty((parts, m, n), dtype=torch.float32, device=x.device)
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    part_kernel[(parts * num_n,)](x, w, partial, m, n, k, num_n, LENGTH=512, BLOCK_N=64, BLOCK_K=32)
    sum_kernel[(triton.cdiv(m * n, 256),)](partial, y, parts, m * n, BLOCK=256)
    return y
