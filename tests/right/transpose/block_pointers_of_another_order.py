# needs triton<3.9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, stride, n, m, R: tl.constexpr, C: tl.constexpr):
    across = tl.cdiv(m, C)
    top, left = tl.program_id(0) // across * R, tl.program_id(0) % across * C
    x = tl.make_block_ptr(x_ptr, (n, m), (stride, 1), (top, left), (R, C), (1, 0))
    out = tl.make_block_ptr(out_ptr, (n, m), (1, n), (top, left), (R, C), (0, 1))
    tl.store(out, tl.load(x, boundary_check=(0, 1)), boundary_check=(0, 1))


def transpose(x):
    n, m = x.shape
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(n, 32) * triton.cdiv(m, 32),)](x, out, x.stride(0), n, m, R=32, C=32)
    return out
