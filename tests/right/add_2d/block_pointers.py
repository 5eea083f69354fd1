# needs triton<3.9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, xr, xc, yr, yc, m, n, R: tl.constexpr, C: tl.constexpr):
    across = tl.cdiv(n, C)
    at = (tl.program_id(0) // across * R, tl.program_id(0) % across * C)
    x = tl.make_block_ptr(x_ptr, (m, n), (xr, xc), at, (R, C), (1, 0))
    y = tl.make_block_ptr(y_ptr, (m, n), (yr, yc), at, (R, C), (1, 0))
    out = tl.make_block_ptr(out_ptr, (m, n), (n, 1), at, (R, C), (1, 0))
    tl.store(out, tl.load(x, boundary_check=(0, 1)) + tl.load(y, boundary_check=(0, 1)), boundary_check=(0, 1))


def add_2d(x, y):
    m, n = x.shape
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(m, 16) * triton.cdiv(n, 64),)](
            x, y, out, x.stride(0), x.stride(1), y.stride(0), y.stride(1), m, n, R=16, C=64
        )
    return out
