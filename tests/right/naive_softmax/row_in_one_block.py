import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(in_ptr, output_ptr, row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_cols
    x = tl.load(in_ptr + row * row_stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    row_max = tl.max(x, axis=0)
    numerator = tl.exp(x - row_max)
    row_sum = tl.sum(numerator, axis=0)
    tl.store(output_ptr + row * output_row_stride + offsets, numerator / row_sum, mask=mask)


def naive_softmax(x):
    if x.dim() != 2:
        raise ValueError(f"x must have two dimensions, not {x.dim()}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    if x.stride(1) != 1:
        raise ValueError(f"the columns of x must lie side by side: stride 1, not {x.stride(1)}")
    n_rows, n_cols = x.shape
    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n_rows:
        softmax_kernel[(n_rows,)](
            x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=triton.next_power_of_2(n_cols)
        )
    return output
