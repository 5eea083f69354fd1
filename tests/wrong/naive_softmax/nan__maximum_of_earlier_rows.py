import torch
import triton
import triton.language as tl


@triton.jit
def naive_softmax_kernel(
    in_ptr, output_ptr, row_stride, output_row_stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr
):
    row_max = -float("inf")
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        in_row = in_ptr + tl.cast(row, tl.int64) * row_stride
        output_row = output_ptr + tl.cast(row, tl.int64) * output_row_stride
        for start in range(0, n_cols, BLOCK_SIZE):
            offsets = start + tl.arange(0, BLOCK_SIZE)
            block = tl.load(in_row + offsets, mask=offsets < n_cols, other=-float("inf")).to(tl.float32)
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
            tl.store(output_row + offsets, tl.exp(block - row_max) / row_sum, mask=mask)


def naive_softmax(x):
    n_rows, n_cols = x.shape
    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n_rows:
        naive_softmax_kernel[(min(n_rows, 256),)](
            x, output, x.stride(0), output.stride(0), n_rows, n_cols, BLOCK_SIZE=256
        )
    return output
