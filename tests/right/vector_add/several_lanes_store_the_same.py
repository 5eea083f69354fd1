import torch
import triton
import triton.language as tl


@triton.jit
def doubled(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    # 2 * BLOCK lanes, and every element belongs to two of them
    i = tl.program_id(0) * BLOCK + tl.arange(0, 2 * BLOCK) % BLOCK
    z = tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n)
    tl.store(z_ptr + i, z, mask=i < n)


def add(x, y):
    z = torch.empty_like(x)
    if z.numel():
        doubled[(triton.cdiv(z.numel(), 256),)](x, y, z, z.numel(), BLOCK=256)
    return z
