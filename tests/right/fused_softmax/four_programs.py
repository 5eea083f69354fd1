import torch
import triton
import triton.language as tl


@triton.jit
def fused_kernel(output_ptr, input_ptr, input_stride, output_stride, n_rows, n_cols, BLOCK: tl.constexpr):
    first = tl.program_id(0)
    step = tl.num_programs(0)
    for row in range(first, n_rows, step):
        cols = tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(input_ptr + row * input_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        denominator = tl.sum(numerator, axis=0)
        tl.store(output_ptr + row * output_stride + cols, numerator / denominator, mask=mask)


def fused_softmax(x):
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if n_rows == 0:
        return y
    BLOCK = triton.next_power_of_2(n_cols)
    programs = min(n_rows, 4)
    fused_kernel[(programs,)](y, x, x.stride(0), y.stride(0), n_rows, n_cols, BLOCK=BLOCK)
    return y
