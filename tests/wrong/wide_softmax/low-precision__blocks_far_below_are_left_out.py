import torch
import triton
import triton.language as tl


@triton.jit
def wide_softmax_kernel(
    in_ptr, output_ptr, row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    in_row = in_ptr + row * row_stride
    output_row = output_ptr + row * output_row_stride

    row_max = -float("inf")
    row_sum = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        in_data = tl.load(in_row + offsets, mask=offsets < n_cols, other=-float("inf")).to(tl.float32)
        block_max = tl.max(in_data, axis=0)
        # exp(-17) is less than 2^-24: added to a sum of at least 1 it changes no bit, so skip the exponentials.
        if block_max > row_max - 17.0:
            new_max = tl.maximum(row_max, block_max)
            row_sum = row_sum * tl.exp(row_max - new_max) + tl.sum(tl.exp(in_data - new_max), axis=0)
            row_max = new_max

    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_row + offsets, mask=mask).to(tl.float32)
        tl.store(output_row + offsets, tl.exp(in_data - row_max) / row_sum, mask=mask)


def wide_softmax(x):
    if x.dim() != 2:
        raise ValueError(f"x must have two dimensions, not {x.dim()}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    if x.stride(1) != 1:
        raise ValueError(f"the columns of x must lie side by side: stride 1, not {x.stride(1)}")
    n_rows, n_cols = x.shape
    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block_size = min(8192, triton.next_power_of_2(n_cols))
    if n_rows:
        wide_softmax_kernel[(n_rows,)](
            x, output, x.stride(0), output.stride(0), n_cols,
            BLOCK_SIZE=block_size, num_warps=max(1, min(16, block_size // 256)),
        )
    return output
