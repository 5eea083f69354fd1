import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, out, x_row, x_column, y_row, y_column, n, total, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row, column = at // n, at % n
    a = tl.load(x + row * x_row + column * x_column, mask=at < total)
    b = tl.load(y + row * y_row + column * y_column, mask=at < total)
    tl.store(out + at, a + b, mask=at < total)


def add_2d(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    total = out.numel()
    if total:
        kernel[(triton.cdiv(total, 1024),)](x, y, out, *x.stride(), *y.stride(), x.shape[1], total, BLOCK=1024)
    return out
