import torch
import triton
import triton.language as tl
from workshop import device


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, m_ptr, l_ptr, acc_ptr, stride_qh, stride_kh, stride_kt, stride_vh, stride_vt, T, scale,
    part_length, D: tl.constexpr, BLOCK_T: tl.constexpr,
):  # fmt: skip
    h = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1).to(tl.int64)
    parts = tl.num_programs(1)
    first = part * part_length
    end = tl.minimum(first + part_length, T)
    offs_d = tl.arange(0, D)
    q = tl.load(q_ptr + h * stride_qh + offs_d).to(tl.float32)
    m_i = -float("inf")
    l_i = 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    for start in range(first, end, BLOCK_T):
        offs_t = start + tl.arange(0, BLOCK_T)
        mask = offs_t < end
        k_ptrs = k_ptr + h * stride_kh + offs_t[:, None] * stride_kt + offs_d[None, :]
        v_ptrs = v_ptr + h * stride_vh + offs_t[:, None] * stride_vt + offs_d[None, :]
        k = tl.load(k_ptrs, mask=mask[:, None], other=0.0).to(tl.float32)
        scores = tl.sum(k * q[None, :], axis=1) * scale
        scores = tl.where(mask, scores, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(scores, axis=0))
        alpha = tl.exp(m_i - m_new)
        p = tl.exp(scores - m_new)
        v = tl.load(v_ptrs, mask=mask[:, None], other=0.0).to(tl.float32)
        l_i = l_i * alpha + tl.sum(p, axis=0)
        acc = acc * alpha + tl.sum(p[:, None] * v, axis=0)
        m_i = m_new
    tl.store(m_ptr + h * parts + part, m_i)
    tl.store(l_ptr + h * parts + part, l_i)
    tl.store(acc_ptr + (h * parts + part) * D + offs_d, acc)


@triton.jit
def merge_kernel(m_ptr, l_ptr, acc_ptr, out_ptr, parts, D: tl.constexpr):
    h = tl.program_id(0).to(tl.int64)
    offs_d = tl.arange(0, D)
    m = -float("inf")
    for part in range(parts):
        m = tl.maximum(m, tl.load(m_ptr + h * parts + part))
    l = 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    for part in range(parts):
        weight = tl.exp(tl.load(m_ptr + h * parts + part) - m)
        l += tl.load(l_ptr + h * parts + part) * weight
        acc += tl.load(acc_ptr + (h * parts + part) * D + offs_d) * weight
    tl.store(out_ptr + h * D + offs_d, acc / l)


def split_decode_attention(q, k, v):
    H, T, D = k.shape
    out = torch.empty((H, D), dtype=q.dtype, device=q.device)
    if out.numel() == 0:
        return out
    parts = max(1, triton.cdiv(2 * device().multiprocessors, H))
    part_length = max(1, T // parts)
    parts = triton.cdiv(T, part_length)
    m = torch.empty((H, parts), dtype=torch.float32, device=q.device)
    l = torch.empty((H, parts), dtype=torch.float32, device=q.device)
    acc = torch.empty((H, parts, D), dtype=torch.float32, device=q.device)
    part_kernel[(H, parts)](
        q, k, v, m, l, acc, q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1), T, D**-0.5, part_length,
        D=D, BLOCK_T=32,
    )  # fmt: skip
    merge_kernel[(H,)](m, l, acc, out, parts, D=D)
    return out
