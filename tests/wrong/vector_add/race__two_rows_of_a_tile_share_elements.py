import torch
import triton
import triton.language as tl


@triton.jit
def tile(x_ptr, y_ptr, z_ptr, n, COLS: tl.constexpr):
    row = tl.arange(0, 2)[:, None]
    i = tl.program_id(0) * COLS + tl.arange(0, COLS)[None, :] + 0 * row
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(z_ptr + i, tl.where(row == 0, y, x + y), mask=i < n)


def add(x, y):
    z = torch.empty_like(x)
    if z.numel():
        tile[(triton.cdiv(z.numel(), 512),)](x, y, z, z.numel(), COLS=512)
    return z
