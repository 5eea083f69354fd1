import torch
import triton
import triton.language as tl


@triton.jit
def max_and_sum_kernel(x_ptr, max_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = tl.full((BLOCK,), -float("inf"), tl.float32)
    s = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, x)
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)
        s = s * tl.exp(m - shift) + tl.exp(x - shift)
        m = m_new
    row_max = tl.max(m, axis=0)
    row_sum = tl.sum(s * tl.exp(m - row_max), axis=0)
    tl.store(max_ptr + row, row_max)
    tl.store(sum_ptr + row, row_sum)


def row_max_and_sum(x):
    rows, n = x.shape
    maxima = torch.empty(rows, dtype=torch.float32, device=x.device)
    sums = torch.empty(rows, dtype=torch.float32, device=x.device)
    if rows == 0:
        return maxima, sums
    max_and_sum_kernel[(rows,)](x, maxima, sums, n, BLOCK=512)
    return maxima, sums
