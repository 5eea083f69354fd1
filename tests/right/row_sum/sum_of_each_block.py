import torch
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    row_ptr = x_ptr + row * row_stride
    total = 0.0
    for i in range(tl.cdiv(n_cols, BLOCK)):
        cols = i * BLOCK + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(row_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        total += tl.sum(x, axis=0)
    tl.store(out_ptr + row, total)


def row_sum(x):
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    if n_rows == 0:
        return out
    row_sum_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=1024)
    return out
