"""Rows are padded with -inf to a power of two first, so that the kernel needs no mask for its load."""
import torch
import triton
import triton.language as tl


@triton.jit
def full_rows(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * BLOCK + cols).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * n_cols + cols, e / tl.sum(e, axis=0), mask=cols < n_cols)


def fused_softmax(x):
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if y.numel():
        block = triton.next_power_of_2(n_cols)
        padded = torch.nn.functional.pad(x, (0, block - n_cols), value=-float("inf"))
        full_rows[(n_rows,)](padded, y, n_cols, BLOCK=block)
    return y
