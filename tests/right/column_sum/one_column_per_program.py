import torch
import triton
import triton.language as tl


@triton.jit
def column_sum_kernel(x_ptr, output_ptr, row_stride, n, BLOCK: tl.constexpr):
    col = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = rows < n
        x = tl.load(x_ptr + rows * row_stride + col, mask=mask, other=0.0)
        acc += x.to(tl.float32)
    tl.store(output_ptr + col, tl.sum(acc, axis=0))


def column_sum(x):
    n, m = x.shape
    output = torch.empty(m, dtype=torch.float32, device=x.device)
    if m == 0:
        return output
    column_sum_kernel[(m,)](x, output, x.stride(0), n, BLOCK=256)
    return output
