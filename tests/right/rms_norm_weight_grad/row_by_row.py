import torch
import triton
import triton.language as tl


@triton.jit
def weight_grad_kernel(x_ptr, dy_ptr, rstd_ptr, dw_ptr, x_stride, dy_stride, n_rows, n_cols, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(n_rows):
        x = tl.load(x_ptr + row.to(tl.int64) * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row.to(tl.int64) * dy_stride + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        acc += dy * x * rstd
    tl.store(dw_ptr + cols, acc, mask=mask)


def rms_norm_weight_grad(x, dy, rstd):
    n_rows, n_cols = x.shape
    dw = torch.zeros(n_cols, dtype=torch.float32, device=x.device)
    if n_rows == 0 or n_cols == 0:
        return dw
    grid = (triton.cdiv(n_cols, 128),)
    weight_grad_kernel[grid](x, dy, rstd, dw, x.stride(0), dy.stride(0), n_rows, n_cols, BLOCK=128)
    return dw
