import torch
import triton
import triton.language as tl


@triton.jit
def four_passes(x_ptr, y_ptr, x_stride, y_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    bottom = float("inf")
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=float("inf"))
        bottom = tl.minimum(bottom, tl.min(x.to(tl.float32), axis=0))
    top = bottom
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=-float("inf"))
        top = tl.maximum(top, tl.max(x.to(tl.float32), axis=0))
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        total += tl.sum(tl.exp(x - top), axis=0)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols).to(tl.float32)
        tl.store(y_ptr + row * y_stride + cols, tl.exp(x - top) / total, mask=cols < n_cols)


def naive_softmax(x):
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if y.numel():
        four_passes[(n_rows,)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK=256)
    return y
