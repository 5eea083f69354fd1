import torch
import triton
import triton.language as tl

from workshop import device


@triton.jit
def part_kernel(
    q_ptr, k_ptr, ks_ptr, v_ptr, vs_ptr, acc_ptr, m_ptr, s_ptr, q_head, k_head, k_row, ks_head, v_head, v_row, vs_head,
    t, parts, length, scale, D: tl.constexpr, ROWS: tl.constexpr,
):
    pid = tl.program_id(0).to(tl.int64)
    head, part = pid // parts, pid % parts
    columns = tl.arange(0, D)
    q = tl.load(q_ptr + head * q_head + columns).to(tl.float32) * scale
    end = tl.minimum((part + 1) * length, t)
    m = -float("inf")
    s = 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(part * length, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        inside = rows < end
        k = tl.load(k_ptr + head * k_head + rows[:, None] * k_row + columns[None, :], mask=inside[:, None], other=0)
        ks = tl.load(ks_ptr + head * ks_head + rows, mask=inside, other=0.0)
        x = tl.where(inside, tl.sum(k.to(tl.float32) * q[None, :], axis=1) * ks, -float("inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        a = tl.exp(m - m_new)
        p = tl.exp(x - m_new)
        v = tl.load(v_ptr + head * v_head + rows[:, None] * v_row + columns[None, :], mask=inside[:, None], other=0)
        vs = tl.load(vs_ptr + head * vs_head + rows, mask=inside, other=0.0)
        acc = acc * a + tl.sum(v.to(tl.float32) * (p * vs)[:, None], axis=0)
        s = s * a + tl.sum(p, axis=0)
        m = m_new
    tl.store(acc_ptr + pid * D + columns, acc)
    tl.store(m_ptr + pid, m)
    tl.store(s_ptr + pid, s)


@triton.jit
def merge_kernel(acc_ptr, m_ptr, s_ptr, out_ptr, parts, D: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, D)
    m = tl.load(m_ptr + head * parts)
    s = tl.load(s_ptr + head * parts)
    acc = tl.load(acc_ptr + head * parts * D + columns)
    for part in range(1, parts):
        i = head * parts + part
        m_i = tl.load(m_ptr + i)
        m_new = tl.maximum(m, m_i)
        a, b = tl.exp(m - m_new), tl.exp(m_i - m_new)
        s = s * a + tl.load(s_ptr + i) * b
        acc = acc * a + tl.load(acc_ptr + i * D + columns) * b
        m = m_new
    tl.store(out_ptr + head * D + columns, acc / s)


def int8_decode_attention(q, k, k_scale, v, v_scale):
    heads, t, d = k.shape
    out = torch.empty((heads, d), dtype=q.dtype, device=q.device)
    if heads == 0:
        return out
    wanted = triton.cdiv(2 * device().multiprocessors, heads)
    length = max(256, triton.cdiv(t, wanted))
    parts = triton.cdiv(t, length)
    acc = torch.empty((heads * parts, d), dtype=torch.float32, device=q.device)
    m, s = (torch.empty(heads * parts, dtype=torch.float32, device=q.device) for _ in range(2))
    part_kernel[(heads * parts,)](
        q, k, k_scale, v, v_scale, acc, m, s, q.stride(0), k.stride(0), k.stride(1), k_scale.stride(0), v.stride(0),
        v.stride(1), v_scale.stride(0), t, parts, length, d**-0.5, D=d, ROWS=32,
    )
    merge_kernel[(heads,)](acc, m, s, out, parts, D=d)
    return out
