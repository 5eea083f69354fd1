import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, x_stride, y_stride, n_rows, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=-1e9).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(y_ptr + row * y_stride + cols, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if y.numel():
        block = triton.next_power_of_2(n_cols)
        kernel[(min(n_rows, 8),)](x, y, x.stride(0), y.stride(0), n_rows, n_cols, BLOCK=block)
    return y
