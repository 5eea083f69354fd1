import torch
import triton
import triton.language as tl

from workshop import device


@triton.jit
def walk(
    q, k, v, m_of, s_of, acc_of, q_stride, k_head, k_row, v_head, v_row, t, length, scale, D: tl.constexpr,
    R: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1).to(tl.int64) * length
    end = tl.minimum(first + length, t)
    c = tl.arange(0, D)
    query = tl.load(q + head * q_stride + c).to(tl.float32) * scale
    m = -float("inf")
    s = 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(first, end, R):
        token = start + tl.arange(0, R)
        ok = token < end
        keys = tl.load(k + head * k_head + token[:, None] * k_row + c[None, :], mask=ok[:, None], other=0.0)
        values = tl.load(v + head * v_head + token[:, None] * v_row + c[None, :], mask=ok[:, None], other=0.0)
        x = tl.where(ok, tl.sum(keys.to(tl.float32) * query[None, :], axis=1), -float("inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        weights = tl.exp(x - m_new)
        s = s * tl.exp(m - m_new) + tl.sum(weights, axis=0)
        acc = acc * tl.exp(m - m_new) + tl.sum(weights[:, None] * values.to(tl.float32), axis=0)
        m = m_new
    place = head * tl.num_programs(1) + tl.program_id(1)
    tl.store(m_of + place, m)
    tl.store(s_of + place, s)
    tl.store(acc_of + place * D + c, acc)


@triton.jit
def merge(m_of, s_of, acc_of, out, parts, D: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, D)
    place = head * parts
    m = tl.load(m_of + place)
    s = tl.load(s_of + place)
    acc = tl.load(acc_of + place * D + c)
    for _ in range(1, parts):
        place += 1
        m_part = tl.load(m_of + place)
        larger = tl.maximum(m, m_part)
        old, new = tl.exp(m - larger), tl.exp(m_part - larger)
        s = s * old + tl.load(s_of + place) * new
        acc = acc * old + tl.load(acc_of + place * D + c) * new
        m = larger
    tl.store(out + head * D + c, acc / s)


def split_decode_attention(q, k, v):
    h, t, d = k.shape
    out = torch.empty((h, d), dtype=q.dtype, device=q.device)
    if h == 0:
        return out
    length = max(1, t // triton.cdiv(2 * device().multiprocessors, h))
    parts = triton.cdiv(t, length)
    m = torch.empty((h, parts), dtype=torch.float32, device=q.device)
    s = torch.empty_like(m)
    acc = torch.empty((h, parts, d), dtype=torch.float32, device=q.device)
    strides = q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1)
    walk[(h, parts)](q, k, v, m, s, acc, *strides, t, length, d**-0.5, D=d, R=32)
    merge[(h,)](m, s, acc, out, parts, D=d)
    return out
