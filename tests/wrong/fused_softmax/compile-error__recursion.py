import torch
import triton
import triton.language as tl


@triton.jit
def softmax_of_rows(x_ptr, y_ptr, x_stride, y_stride, row, n_rows, n_cols, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + columns, numerator / tl.sum(numerator, axis=0), mask=mask)
    if row + tl.num_programs(0) < n_rows:
        softmax_of_rows(x_ptr, y_ptr, x_stride, y_stride, row + tl.num_programs(0), n_rows, n_cols, BLOCK)


@triton.jit
def softmax_kernel(x_ptr, y_ptr, x_stride, y_stride, n_rows, n_cols, BLOCK: tl.constexpr):
    softmax_of_rows(x_ptr, y_ptr, x_stride, y_stride, tl.program_id(0), n_rows, n_cols, BLOCK)


def fused_softmax(x):
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    block = triton.next_power_of_2(n_cols)
    softmax_kernel[(min(n_rows, 4),)](x, y, x.stride(0), y.stride(0), n_rows, n_cols, BLOCK=block)
    return y
