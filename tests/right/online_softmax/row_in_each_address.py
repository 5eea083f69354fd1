import torch
import triton
import triton.language as tl


@triton.jit
def online_softmax_kernel(
    in_ptr, output_ptr, row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr
):
    pid = tl.program_id(0)
    in_max = -float("inf")
    in_exp_sum = 0.0

    for col_idx in range(0, n_cols, BLOCK_SIZE):
        offsets = col_idx + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_ptr + pid * row_stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        in_max_new = tl.maximum(in_max, tl.max(in_data, axis=0))
        in_exp_sum = in_exp_sum * tl.exp(in_max - in_max_new) + tl.sum(tl.exp(in_data - in_max_new), axis=0)
        in_max = in_max_new

    for col_idx in range(0, n_cols, BLOCK_SIZE):
        offsets = col_idx + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_ptr + pid * row_stride + offsets, mask=mask).to(tl.float32)
        softmax = tl.exp(in_data - in_max) / in_exp_sum
        tl.store(output_ptr + pid * output_row_stride + offsets, softmax, mask=mask)


def online_softmax(x):
    n_rows, n_cols = x.shape
    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n_rows:
        online_softmax_kernel[(n_rows,)](
            x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=256
        )
    return output
