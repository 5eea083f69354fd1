import torch
import triton
import triton.language as tl


@triton.jit
def load_scaled(ptr, row_stride, scale_ptr, rows, columns, t):
    """Rows of int8 numbers as float32, each multiplied by its scale."""
    whole = tl.load(ptr + rows[:, None] * row_stride + columns[None, :], mask=rows[:, None] < t, other=0)
    scale = tl.load(scale_ptr + rows, mask=rows < t, other=0.0)
    return whole.to(tl.float32) * scale[:, None]


@triton.jit
def kernel(
    q_ptr, k_ptr, ks_ptr, v_ptr, vs_ptr, out_ptr, q_head, k_head, k_row, ks_head, v_head, v_row, vs_head, t,
    D: tl.constexpr, B: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, D)
    q = tl.load(q_ptr + head * q_head + columns).to(tl.float32) / tl.sqrt(D * 1.0)
    m = tl.full((), -float("inf"), tl.float32)
    s = tl.full((), 0, tl.float32)
    acc = tl.zeros([D], dtype=tl.float32)
    start = 0
    while start < t:
        rows = start + tl.arange(0, B).to(tl.int64)
        k = load_scaled(k_ptr + head * k_head, k_row, ks_ptr + head * ks_head, rows, columns, t)
        x = tl.where(rows < t, tl.sum(q[None, :] * k, axis=1), -float("inf"))
        m_new = tl.maximum(m, tl.max(x))
        w = tl.exp(x - m_new)
        v = load_scaled(v_ptr + head * v_head, v_row, vs_ptr + head * vs_head, rows, columns, t)
        s = s * tl.exp(m - m_new) + tl.sum(w)
        acc = acc * tl.exp(m - m_new) + tl.sum(w[:, None] * v, axis=0)
        m = m_new
        start += B
    tl.store(out_ptr + head * D + columns, acc / s)


def int8_decode_attention(q, k, k_scale, v, v_scale):
    h, t, d = k.shape
    out = torch.empty((h, d), dtype=q.dtype, device=q.device)
    k_scale, v_scale = k_scale.contiguous(), v_scale.contiguous()
    if h:
        kernel[(h,)](
            q, k, k_scale, v, v_scale, out, q.stride(0), k.stride(0), k.stride(1), t, v.stride(0), v.stride(1), t, t,
            D=d, B=64,
        )
    return out
