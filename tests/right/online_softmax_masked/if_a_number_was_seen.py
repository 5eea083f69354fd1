import torch
import triton
import triton.language as tl


@triton.jit
def online_softmax_masked_kernel(in_ptr, output_ptr, row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    in_row = in_ptr + row * row_stride
    output_row = output_ptr + row * output_row_stride
    in_max = -float("inf")
    in_exp_sum = 0.0
    for col_idx in range(0, n_cols, BLOCK_SIZE):
        offsets = col_idx + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        block_max = tl.max(in_data, axis=0)
        if block_max != -float("inf"):
            in_max_new = tl.maximum(in_max, block_max)
            in_exp_sum = in_exp_sum * tl.exp(in_max - in_max_new) + tl.sum(tl.exp(in_data - in_max_new), axis=0)
            in_max = in_max_new
    for col_idx in range(0, n_cols, BLOCK_SIZE):
        offsets = col_idx + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_row + offsets, mask=mask).to(tl.float32)
        tl.store(output_row + offsets, tl.exp(in_data - in_max) / in_exp_sum, mask=mask)


def online_softmax_masked(x):
    if x.dim() != 2:
        raise ValueError(f"x must have two dimensions, not {x.dim()}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    if x.stride(1) != 1:
        raise ValueError(f"the columns of x must lie side by side: stride 1, not {x.stride(1)}")
    n_rows, n_cols = x.shape
    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n_rows:
        online_softmax_masked_kernel[(n_rows,)](x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=256)
    return output
