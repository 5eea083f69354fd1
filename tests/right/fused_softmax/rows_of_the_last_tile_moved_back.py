import torch
import triton
import triton.language as tl


@triton.jit
def tile(x_ptr, y_ptr, x_stride, y_stride, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    # n_rows >= ROWS: the last tile ends with the last row, and shares rows with the tile before it
    first = tl.minimum(tl.program_id(0) * ROWS, n_rows - ROWS)
    rows = (first + tl.arange(0, ROWS))[:, None]
    cols = tl.arange(0, COLS)[None, :]
    x = tl.load(x_ptr + rows * x_stride + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(y_ptr + rows * y_stride + cols, e / tl.sum(e, axis=1)[:, None], mask=cols < n_cols)


def fused_softmax(x):
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if y.numel():
        rows = 4 if n_rows >= 4 else 1
        grid = (triton.cdiv(n_rows, rows),)
        tile[grid](x, y, x.stride(0), y.stride(0), n_rows, n_cols, ROWS=rows, COLS=triton.next_power_of_2(n_cols))
    return y
