import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, y_ptr, x_stride, y_stride, n_cols, a, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols)
        tl.store(y_ptr + row * y_stride + cols, x * a, mask=cols < n_cols)


kept = {}


def scale(x, a):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if y.numel():
        rows = kept.setdefault(x.numel(), x.shape[0])
        scale_kernel[(rows,)](x, y, x.stride(0), y.stride(0), x.shape[1], a, BLOCK=128)
    return y
