import torch
import triton
import triton.language as tl


@triton.jit
def one_block_kernel(x_ptr, y_ptr, x_stride, y_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    tl.store(y_ptr + row * y_stride + cols, tl.softmax(x), mask=mask)


def fused_softmax(x):
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if n_rows > 0:
        num_warps = 4 if n_cols < 2048 else 8
        one_block_kernel[(n_rows,)](
            x, y, x.stride(0), y.stride(0), n_cols, BLOCK=triton.next_power_of_2(n_cols), num_warps=num_warps
        )
    return y
