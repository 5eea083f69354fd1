"""The row is read once. Its exponentials wait in a scratch tensor of this call, and the same lanes read them back."""
import torch
import triton
import triton.language as tl


@triton.jit
def parked(x_ptr, e_ptr, y_ptr, x_stride, n_rows, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(e_ptr + row * n_cols + cols, e, mask=cols < n_cols)
        total = tl.sum(e, axis=0)
        e = tl.load(e_ptr + row * n_cols + cols, mask=cols < n_cols)
        tl.store(y_ptr + row * n_cols + cols, e / total, mask=cols < n_cols)


def fused_softmax(x):
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if y.numel():
        scratch = torch.empty((n_rows, n_cols), dtype=torch.float32, device=x.device)
        block = triton.next_power_of_2(n_cols)
        parked[(min(n_rows, 3),)](x, scratch, y, x.stride(0), n_rows, n_cols, BLOCK=block, num_warps=8)
    return y
