import torch
import triton
import triton.language as tl


@triton.jit
def int8_kernel(
    q_ptr, k_ptr, k_scale_ptr, v_ptr, v_scale_ptr, output_ptr, q_stride, k_head, k_row, v_head, v_row,
    t, scale, D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, D)
    q = tl.load(q_ptr + head * q_stride + columns).to(tl.float32) * scale
    m = -float("inf")
    s = 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(0, t, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = rows < t
        k_scale = tl.load(k_scale_ptr + head * t + rows, mask=mask, other=0.0)
        v_scale = tl.load(v_scale_ptr + head * t + rows, mask=mask, other=0.0)
        k = tl.load(k_ptr + head * k_head + rows[:, None] * k_row + columns[None, :], mask=mask[:, None], other=0)
        v = tl.load(v_ptr + head * v_head + rows[:, None] * v_row + columns[None, :], mask=mask[:, None], other=0)
        raw = tl.sum(q[None, :] * k.to(tl.float32), axis=1)
        # A bound is as good as the maximum: both reductions run side by side, before the scales are applied
        bound = tl.max(tl.where(mask, raw, -float("inf")), axis=0) * tl.max(k_scale, axis=0)
        x = tl.where(mask, raw * k_scale, -float("inf"))
        m_new = tl.maximum(m, bound)
        weights = tl.exp(x - m_new)
        rescale = tl.exp(m - m_new)
        s = s * rescale + tl.sum(weights, axis=0)
        acc = acc * rescale + tl.sum((weights * v_scale)[:, None] * v.to(tl.float32), axis=0)
        m = m_new
    tl.store(output_ptr + head * D + columns, acc / s)


def int8_decode_attention(q, k, k_scale, v, v_scale):
    heads, t, d = k.shape
    output = torch.empty((heads, d), dtype=q.dtype, device=q.device)
    if heads:
        int8_kernel[(heads,)](
            q, k, k_scale, v, v_scale, output,
            q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1), t,
            d**-0.5, D=d, ROWS=64,
        )  # fmt: skip
    return output
