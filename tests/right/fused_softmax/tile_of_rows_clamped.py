"""Each program takes four whole rows. Past the last row, it takes the last row again."""
import torch
import triton
import triton.language as tl


@triton.jit
def four_rows(x_ptr, y_ptr, x_stride, y_stride, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.minimum(tl.program_id(0) * ROWS + tl.arange(0, ROWS), n_rows - 1)[:, None]
    cols = tl.arange(0, COLS)[None, :]
    x = tl.load(x_ptr + rows * x_stride + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    tl.store(y_ptr + rows * y_stride + cols, e / tl.sum(e, axis=1, keep_dims=True), mask=cols < n_cols)


def fused_softmax(x):
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if y.numel():
        cols = triton.next_power_of_2(n_cols)
        four_rows[(triton.cdiv(n_rows, 4),)](x, y, x.stride(0), y.stride(0), n_rows, n_cols, ROWS=4, COLS=cols)
    return y
