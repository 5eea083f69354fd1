"""A bool is one byte, which is 0 or 1: the mask as a tensor of bytes, of the same memory."""

import torch
import triton
import triton.language as tl


@triton.jit
def masked_mean_kernel(x_ptr, keep_ptr, output_ptr, row_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + columns, mask=columns < n, other=0.0).to(tl.float32)
        keep = tl.load(keep_ptr + row * n + columns, mask=columns < n, other=0) != 0
        total += tl.where(keep, x, 0.0)
        count += keep.to(tl.float32)
    sums, counts = tl.sum(total, axis=0), tl.sum(count, axis=0)
    tl.store(output_ptr + row, sums / tl.maximum(counts, 1.0))


def masked_mean(x, keep):
    m, n = x.shape
    output = torch.empty(m, dtype=torch.float32, device=x.device)
    if m:
        masked_mean_kernel[(m,)](x, keep.view(torch.uint8), output, x.stride(0), n, BLOCK=256)
    return output
