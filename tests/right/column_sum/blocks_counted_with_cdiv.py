import torch
import triton
import triton.language as tl


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, stride, n_rows, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    pid = tl.program_id(0)
    cols = pid * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = cols < n_cols
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for i in range(tl.cdiv(n_rows, BLOCK_M)):
        rows = i * BLOCK_M + tl.arange(0, BLOCK_M)
        row_mask = rows < n_rows
        offsets = rows[:, None].to(tl.int64) * stride + cols[None, :]
        mask = row_mask[:, None] & col_mask[None, :]
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        total += tl.sum(x, axis=0)
    tl.store(out_ptr + cols, total, mask=col_mask)


def column_sum(x):
    n_rows, n_cols = x.shape
    out = torch.zeros(n_cols, dtype=torch.float32, device=x.device)
    if x.numel() == 0:
        return out
    grid = (triton.cdiv(n_cols, 64),)
    column_sum_kernel[grid](x, out, x.stride(0), n_rows, n_cols, BLOCK_M=32, BLOCK_N=64)
    return out
