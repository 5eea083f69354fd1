import torch
import triton
import triton.language as tl


@triton.jit
def weight_grad_kernel(
    x_ptr, dy_ptr, rstd_ptr, dw_ptr, x_stride, dy_stride, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, m, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = (rows[:, None] < m) & (columns[None, :] < n)
        x = tl.load(x_ptr + rows[:, None] * x_stride + columns[None, :], mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + rows[:, None] * dy_stride + columns[None, :], mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + rows, mask=rows < m, other=0.0)
        sums += dy * x * rstd[:, None]
    tl.store(dw_ptr + columns, tl.sum(sums, axis=0), mask=columns < n)


def rms_norm_weight_grad(x, dy, rstd):
    m, n = x.shape
    dw = torch.empty(n, dtype=torch.float32, device=x.device)
    if n:
        weight_grad_kernel[(triton.cdiv(n, 64),)](x, dy, rstd, dw, x.stride(0), dy.stride(0), m, n, ROWS=32, COLUMNS=64)
    return dw
