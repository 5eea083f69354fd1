import torch
import triton
import triton.language as tl


@triton.jit
def loaded_twice(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    top = tl.max(tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")), axis=0)
    e = tl.exp(tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")) - top)
    tl.store(y_ptr + row * n_cols + cols, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if y.numel():
        copy = x.to(torch.float32, copy=True).contiguous()
        loaded_twice[(n_rows,)](copy, y, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return y
