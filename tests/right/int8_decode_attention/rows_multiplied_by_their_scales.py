import torch
import triton
import triton.language as tl


@triton.jit
def int8_kernel(
    q_ptr, k_ptr, k_scale_ptr, v_ptr, v_scale_ptr, out_ptr, q_stride, k_head, k_row, ks_head, v_head, v_row, vs_head,
    t, scale, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, D)
    q = tl.load(q_ptr + head * q_stride + cols).to(tl.float32) * scale
    m = -float("inf")
    s = 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(0, t, BLOCK):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = rows < t
        k = tl.load(k_ptr + head * k_head + rows[:, None] * k_row + cols[None, :], mask=mask[:, None], other=0)
        k_scale = tl.load(k_scale_ptr + head * ks_head + rows, mask=mask, other=0.0)
        v = tl.load(v_ptr + head * v_head + rows[:, None] * v_row + cols[None, :], mask=mask[:, None], other=0)
        v_scale = tl.load(v_scale_ptr + head * vs_head + rows, mask=mask, other=0.0)
        k = k.to(tl.float32) * k_scale[:, None]
        v = v.to(tl.float32) * v_scale[:, None]
        scores = tl.sum(k * q[None, :], axis=1)
        scores = tl.where(mask, scores, -float("inf"))
        m_new = tl.maximum(m, tl.max(scores, axis=0))
        p = tl.exp(scores - m_new)
        alpha = tl.exp(m - m_new)
        s = s * alpha + tl.sum(p, axis=0)
        acc = acc * alpha + tl.sum(p[:, None] * v, axis=0)
        m = m_new
    tl.store(out_ptr + head * D + cols, acc / s)


def int8_decode_attention(q, k, k_scale, v, v_scale):
    h, t, d = k.shape
    out = torch.empty((h, d), dtype=q.dtype, device=q.device)
    if h == 0:
        return out
    int8_kernel[(h,)](
        q, k, k_scale, v, v_scale, out, q.stride(0), k.stride(0), k.stride(1), k_scale.stride(0),
        v.stride(0), v.stride(1), v_scale.stride(0), t, d**-0.5, D=d, BLOCK=64,
    )  # fmt: skip
    return out
