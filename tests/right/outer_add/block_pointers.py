# needs triton<3.9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, m, R: tl.constexpr, C: tl.constexpr):
    pid = tl.program_id(0)
    across = tl.cdiv(m, C)
    top, left = pid // across * R, pid % across * C
    x = tl.load(tl.make_block_ptr(x_ptr, (n,), (1,), (top,), (R,), (0,)), boundary_check=(0,))
    y = tl.load(tl.make_block_ptr(y_ptr, (m,), (1,), (left,), (C,), (0,)), boundary_check=(0,))
    out = tl.make_block_ptr(out_ptr, (n, m), (m, 1), (top, left), (R, C), (1, 0))
    tl.store(out, tl.expand_dims(x, 1) + tl.expand_dims(y, 0), boundary_check=(0, 1))


def outer_add(x, y):
    n, m = x.shape[0], y.shape[0]
    out = torch.empty(n, m, dtype=x.dtype, device=x.device)
    if n and m:
        kernel[(triton.cdiv(n, 16) * triton.cdiv(m, 16),)](x, y, out, n, m, R=16, C=16)
    return out
