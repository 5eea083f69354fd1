import torch
import triton
import triton.language as tl


@triton.jit
def naive_kernel(in_ptr, output_ptr, in_stride, out_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    # your code here
    pass


def naive_softmax(x):
    n_rows, n_cols = x.shape
    output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if n_rows > 0:
        naive_kernel[(n_rows,)](x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=256)
    return output
