import torch
import triton
import triton.language as tl


@triton.jit
def statistics_kernel(x_ptr, top_ptr, sum_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = -float("inf")
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        top = tl.maximum(top, tl.max(x, axis=0))
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        total += tl.sum(tl.exp(x - top), axis=0)
    tl.store(top_ptr + row, top)
    tl.store(sum_ptr + row, total)


@triton.jit
def divide_kernel(x_ptr, top_ptr, sum_ptr, y_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols).to(tl.float32)
    y = tl.exp(x - tl.load(top_ptr + row)) / tl.load(sum_ptr + row)
    tl.store(y_ptr + row * n_cols + cols, y, mask=cols < n_cols)


scratch = {}


def naive_softmax(x):
    rows, n_cols = x.shape
    y = torch.empty((rows, n_cols), dtype=x.dtype, device=x.device)
    if rows:
        if rows not in scratch:
            scratch[rows] = torch.zeros(2, rows, dtype=torch.float32, device=x.device)
        top, total = scratch[rows]
        statistics_kernel[(rows,)](x, top, total, x.stride(0), n_cols, BLOCK=512)
        divide_kernel[rows, triton.cdiv(n_cols, 512)](x, top, total, y, x.stride(0), n_cols, BLOCK=512)
    return y
