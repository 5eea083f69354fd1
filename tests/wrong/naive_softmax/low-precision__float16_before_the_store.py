import torch
import triton
import triton.language as tl


@triton.jit
def naive_softmax_kernel(
    in_ptr, output_ptr, row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr, HALF: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    in_row = in_ptr + row * row_stride
    output_row = output_ptr + row * output_row_stride

    row_max = -float("inf")
    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        block = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        row_max = tl.maximum(row_max, tl.max(block, axis=0))

    lane_sum = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        block = tl.load(in_row + offsets, mask=offsets < n_cols, other=-float("inf")).to(tl.float32)
        lane_sum += tl.exp(block - row_max)
    row_sum = tl.sum(lane_sum, axis=0)

    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        block = tl.load(in_row + offsets, mask=mask).to(tl.float32)
        softmax = tl.exp(block - row_max) / row_sum
        if HALF:  # back to 16 bits
            softmax = softmax.to(tl.float16)
        tl.store(output_row + offsets, softmax, mask=mask)


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
        naive_softmax_kernel[(n_rows,)](
            x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=256, HALF=x.element_size() == 2
        )
    return output
