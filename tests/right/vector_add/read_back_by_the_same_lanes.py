import torch
import triton
import triton.language as tl


@triton.jit
def in_two_steps(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
    z = tl.load(z_ptr + i, mask=i < n)
    tl.store(z_ptr + i, z + tl.load(y_ptr + i, mask=i < n), mask=i < n)


def add(x, y):
    z = torch.empty_like(x)
    if z.numel():
        in_two_steps[(triton.cdiv(z.numel(), 1024),)](x, y, z, z.numel(), BLOCK=1024)
    return z
