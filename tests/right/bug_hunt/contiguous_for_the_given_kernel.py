import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, output_ptr, a, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    columns = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * n_cols + columns, mask=mask).to(tl.float32)
    tl.store(output_ptr + row * n_cols + columns, a * x, mask=mask)


def scale(x, a):
    x = x.contiguous()
    n_rows, n_cols = x.shape
    output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if output.numel() == 0:
        return output
    grid = (n_rows, triton.cdiv(n_cols, 256))
    scale_kernel[grid](x, output, a, n_cols, BLOCK=256)
    return output
