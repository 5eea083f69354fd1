# needs triton<3.9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, stride, m, n, R: tl.constexpr, C: tl.constexpr):
    first = tl.program_id(0) * R
    source = tl.make_block_ptr(
        x, shape=(m, n), strides=(stride, 1), offsets=(first, 0), block_shape=(R, C), order=(1, 0)
    )
    target = tl.make_block_ptr(out, shape=(m,), strides=(1,), offsets=(first,), block_shape=(R,), order=(0,))
    sums = tl.zeros((R, C), tl.float32)
    for _ in range(0, n, C):
        sums += tl.load(source, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        source = tl.advance(source, (0, C))
    tl.store(target, tl.sum(sums, axis=1), boundary_check=(0,))


def row_sum(x):
    m, n = x.shape
    out = torch.empty((m,), dtype=torch.float32, device=x.device)
    if m > 0:
        kernel[(triton.cdiv(m, 16),)](x, out, x.stride(0), m, n, R=16, C=128)
    return out
