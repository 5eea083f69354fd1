import torch
import triton
import triton.language as tl


@triton.jit
def kernel(p, v, out, t, d, R: tl.constexpr, C: tl.constexpr):
    across = tl.cdiv(d, C)
    r = tl.program_id(0) // across * R + tl.arange(0, R).to(tl.int64)
    c = tl.program_id(0) % across * C + tl.arange(0, C)
    ok = (r[:, None] < t) & (c[None, :] < d)
    weights = tl.load(p + r, mask=r < t, other=0.0).to(tl.float32)
    tile = tl.load(v + r[:, None] * d + c[None, :], mask=ok, other=0.0).to(tl.float32)
    tl.atomic_add(out + c, tl.sum(weights[:, None] * tile, axis=0), mask=c < d)


def weighted_sum(p, v):
    t, d = v.shape
    out = torch.zeros(d, dtype=torch.float32, device=v.device)
    if t and d:
        kernel[(triton.cdiv(t, 128) * triton.cdiv(d, 32),)](p, v, out, t, d, R=128, C=32)
    return out
