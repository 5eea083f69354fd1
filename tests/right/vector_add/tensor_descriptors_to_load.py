import torch
import triton
import triton.language as tl

from workshop import DEVICE


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, B: tl.constexpr):
    xd = tl.make_tensor_descriptor(x_ptr, shape=[n], strides=[1], block_shape=[B])
    yd = tl.make_tensor_descriptor(y_ptr, shape=[n], strides=[1], block_shape=[B])
    start = tl.program_id(0) * B
    offsets = start + tl.arange(0, B)
    tl.store(out_ptr + offsets, xd.load([start]) + yd.load([start]), mask=offsets < n)


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        if DEVICE != "cpu" and hasattr(triton, "set_allocator"):
            triton.set_allocator(lambda size, align, stream: torch.empty(size, device=DEVICE, dtype=torch.int8))
        add_kernel[(triton.cdiv(n, 256),)](x, y, out, n, B=256)
    return out
