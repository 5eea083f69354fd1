import torch
import triton
import triton.language as tl


@triton.jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, stride_qh, stride_kh, stride_kt, stride_vh, stride_vt, T, scale,
    D: tl.constexpr, BLOCK_T: tl.constexpr,
):  # fmt: skip
    h = tl.program_id(0).to(tl.int64)
    offs_d = tl.arange(0, D)
    offs_t = tl.arange(0, BLOCK_T).to(tl.int64)
    q = tl.load(q_ptr + h * stride_qh + offs_d).to(tl.float32)
    k_ptrs = k_ptr + h * stride_kh + offs_t[:, None] * stride_kt + offs_d[None, :]
    v_ptrs = v_ptr + h * stride_vh + offs_t[:, None] * stride_vt + offs_d[None, :]
    m_i = -float("inf")
    l_i = 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    for start in range(0, T, BLOCK_T):
        mask = start + offs_t < T
        k = tl.load(k_ptrs, mask=mask[:, None], other=0.0).to(tl.float32)
        scores = tl.sum(k * q[None, :], axis=1) * scale
        scores = tl.where(mask, scores, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(scores, axis=0))
        alpha = tl.exp(m_i - m_new)
        p = tl.exp(scores - m_new)
        v = tl.load(v_ptrs, mask=mask[:, None], other=0.0).to(tl.float32)
        acc = acc * alpha + tl.sum(p[:, None] * v, axis=0)
        l_i = l_i * alpha + tl.sum(p, axis=0)
        m_i = m_new
        k_ptrs += BLOCK_T * stride_kt
        v_ptrs += BLOCK_T * stride_vt
    tl.store(out_ptr + h * D + offs_d, acc / l_i)


def decode_attention(q, k, v):
    H, T, D = k.shape
    out = torch.empty((H, D), dtype=q.dtype, device=q.device)
    if H == 0:
        return out
    decode_kernel[(H,)](
        q, k, v, out, q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1), T, D**-0.5,
        D=D, BLOCK_T=64,
    )  # fmt: skip
    return out
