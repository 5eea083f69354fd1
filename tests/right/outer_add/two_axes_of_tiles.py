import torch
import triton
import triton.language as tl


@triton.jit
def outer_add_kernel(x_ptr, y_ptr, out_ptr, n, m, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    cols = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    x = tl.load(x_ptr + rows, mask=rows < n, other=0.0)
    y = tl.load(y_ptr + cols, mask=cols < m, other=0.0)
    tile = x[:, None] + y[None, :]
    offsets = rows[:, None] * m + cols[None, :]
    mask = (rows[:, None] < n) & (cols[None, :] < m)
    tl.store(out_ptr + offsets, tile, mask=mask)


def outer_add(x, y):
    n = x.shape[0]
    m = y.shape[0]
    out = torch.empty((n, m), dtype=x.dtype, device=x.device)
    if n == 0 or m == 0:
        return out
    grid = (triton.cdiv(n, 32), triton.cdiv(m, 32))
    outer_add_kernel[grid](x, y, out, n, m, BLOCK_N=32, BLOCK_M=32)
    return out
