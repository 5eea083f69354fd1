import torch
import triton
import triton.language as tl


@triton.jit
def kernel(q, k, v, out, q_stride, k_head, k_row, v_head, v_row, t, scale, D: tl.constexpr, R: tl.constexpr):
    """Lane i walks over the tokens i, i + R, i + 2 R, ... The lanes are merged at the end."""
    head = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, R).to(tl.int64)
    c = tl.arange(0, D)[None, :]
    query = tl.load(q + head * q_stride + c).to(tl.float32) * (scale * 1.4426950408889634)
    m = tl.full((R, 1), -1e38, tl.float32)
    s = tl.zeros((R, 1), tl.float32)
    acc = tl.zeros((R, D), tl.float32)
    for start in range(0, t, R):
        token = (start + lane)[:, None]
        ok = token < t
        keys = tl.load(k + head * k_head + token * k_row + c, mask=ok, other=0.0).to(tl.float32)
        values = tl.load(v + head * v_head + token * v_row + c, mask=ok, other=0.0).to(tl.float32)
        x = tl.sum(keys * query, axis=1, keep_dims=True)
        m_new = tl.where(ok, tl.maximum(m, x), m)
        rescale = tl.exp2(m - m_new)
        weight = tl.where(ok, tl.exp2(x - m_new), 0.0)
        s = s * rescale + weight
        acc = acc * rescale + weight * values
        m = m_new
    rescale = tl.exp2(m - tl.max(m, axis=0, keep_dims=True))
    total = tl.sum(s * rescale, axis=0, keep_dims=True)
    tl.store(out + head * D + c, tl.sum(acc * rescale, axis=0, keep_dims=True) / total)


def decode_attention(q, k, v):
    h, t, d = k.shape
    out = torch.empty((h, d), dtype=q.dtype, device=q.device)
    if h:
        kernel[(h,)](
            q, k, v, out, q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1), t, d**-0.5, D=d, R=16
        )
    return out
