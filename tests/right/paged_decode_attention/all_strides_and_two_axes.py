import torch
import triton
import triton.language as tl


@triton.jit
def paged_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, out_ptr, stride_qb, stride_qh, stride_kp, stride_kt, stride_kh,
    stride_vp, stride_vt, stride_vh, stride_table, stride_ob, stride_oh, scale, PAGE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    offs_d = tl.arange(0, D)
    offs_t = tl.arange(0, PAGE)
    length = tl.load(lengths_ptr + b)
    q = tl.load(q_ptr + b * stride_qb + h * stride_qh + offs_d).to(tl.float32)
    m_i = -float("inf")
    l_i = 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    for i in range(tl.cdiv(length, PAGE)):
        page = tl.load(table_ptr + b * stride_table + i).to(tl.int64)
        mask = i * PAGE + offs_t < length
        k_ptrs = k_ptr + page * stride_kp + offs_t[:, None] * stride_kt + h * stride_kh + offs_d[None, :]
        k = tl.load(k_ptrs, mask=mask[:, None], other=0.0).to(tl.float32)
        scores = tl.sum(k * q[None, :], axis=1) * scale
        scores = tl.where(mask, scores, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(scores, axis=0))
        alpha = tl.exp(m_i - m_new)
        p = tl.exp(scores - m_new)
        v_ptrs = v_ptr + page * stride_vp + offs_t[:, None] * stride_vt + h * stride_vh + offs_d[None, :]
        v = tl.load(v_ptrs, mask=mask[:, None], other=0.0).to(tl.float32)
        l_i = l_i * alpha + tl.sum(p, axis=0)
        acc = acc * alpha + tl.sum(p[:, None] * v, axis=0)
        m_i = m_new
    tl.store(out_ptr + b * stride_ob + h * stride_oh + offs_d, acc / l_i)


def paged_decode_attention(q, k_pages, v_pages, block_table, lengths):
    B, H, D = q.shape
    out = torch.empty((B, H, D), dtype=q.dtype, device=q.device)
    if out.numel() == 0:
        return out
    paged_kernel[(B, H)](
        q, k_pages, v_pages, block_table, lengths, out, q.stride(0), q.stride(1),
        k_pages.stride(0), k_pages.stride(1), k_pages.stride(2),
        v_pages.stride(0), v_pages.stride(1), v_pages.stride(2),
        block_table.stride(0), out.stride(0), out.stride(1), D**-0.5, PAGE=k_pages.shape[1], D=D,
    )  # fmt: skip
    return out
