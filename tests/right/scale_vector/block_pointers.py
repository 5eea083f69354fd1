# needs triton<3.9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, a, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    source = tl.make_block_ptr(x, shape=(n,), strides=(1,), offsets=(start,), block_shape=(BLOCK,), order=(0,))
    target = tl.make_block_ptr(out, shape=(n,), strides=(1,), offsets=(start,), block_shape=(BLOCK,), order=(0,))
    values = tl.load(source, boundary_check=(0,)).to(tl.float32) * a
    tl.store(target, values.to(out.dtype.element_ty), boundary_check=(0,))


def scale_vector(x, a):
    out = torch.empty_like(x)
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 2048),)](x, out, a, x.numel(), BLOCK=2048)
    return out
