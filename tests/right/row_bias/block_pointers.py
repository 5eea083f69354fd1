# needs triton<3.9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, b_ptr, out_ptr, stride, n, m, R: tl.constexpr, C: tl.constexpr):
    across = tl.cdiv(m, C)
    at = (tl.program_id(0) // across * R, tl.program_id(0) % across * C)
    x = tl.make_block_ptr(x_ptr, (n, m), (stride, 1), at, (R, C), (1, 0))
    b = tl.make_block_ptr(b_ptr, (m,), (1,), (at[1],), (C,), (0,))
    out = tl.make_block_ptr(out_ptr, (n, m), (m, 1), at, (R, C), (1, 0))
    total = tl.load(x, boundary_check=(0, 1)) + tl.load(b, boundary_check=(0,))[None, :]
    tl.store(out, total, boundary_check=(0, 1))


def row_bias(x, b):
    n, m = x.shape
    out = x.new_empty((n, m))
    if out.numel():
        kernel[(triton.cdiv(n, 16) * triton.cdiv(m, 64),)](x, b, out, x.stride(0), n, m, R=16, C=64)
    return out
