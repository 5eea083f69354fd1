# needs triton<3.9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(p, v, out, t, d, R: tl.constexpr, C: tl.constexpr):
    first = tl.program_id(0) * C
    weights = tl.make_block_ptr(p, (t,), (1,), (0,), (R,), (0,))
    values = tl.make_block_ptr(v, (t, d), (d, 1), (0, first), (R, C), (1, 0))
    sums = tl.zeros((C,), tl.float32)
    for _ in range(0, tl.cdiv(t, R)):
        x = tl.load(weights, boundary_check=(0,), padding_option="zero").to(tl.float32)
        y = tl.load(values, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        sums += tl.sum(x[:, None] * y, axis=0)
        weights = tl.advance(weights, (R,))
        values = tl.advance(values, (R, 0))
    tl.store(tl.make_block_ptr(out, (d,), (1,), (first,), (C,), (0,)), sums, boundary_check=(0,))


def weighted_sum(p, v):
    t, d = v.shape
    out = torch.empty((d,), device=v.device, dtype=torch.float32)
    if d:
        kernel[(triton.cdiv(d, 32),)](p, v, out, t, d, R=64, C=32)
    return out
