import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, x_stride0, x_stride1, y_stride0, y_stride1, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride0 + cols * x_stride1, mask=mask)
    y = tl.load(y_ptr + row * y_stride0 + cols * y_stride1, mask=mask)
    tl.store(out_ptr + row * n_cols + cols, x + y, mask=mask)


def add_2d(x, y):
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if n_rows == 0 or n_cols == 0:
        return out
    BLOCK = triton.next_power_of_2(n_cols)
    add_kernel[(n_rows,)](x, y, out, x.stride(0), x.stride(1), y.stride(0), y.stride(1), n_cols, BLOCK=BLOCK)
    return out
