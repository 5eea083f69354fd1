import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, output_ptr, a, x_stride, output_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    columns = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask)
    tl.store(output_ptr + row * output_stride + columns, float(a) * x, mask=mask)


def scale(x, a):
    n_rows, n_cols = x.shape
    output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if output.numel() == 0:
        return output
    scale_kernel[(n_rows, triton.cdiv(n_cols, 128))](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=128)
    return output
