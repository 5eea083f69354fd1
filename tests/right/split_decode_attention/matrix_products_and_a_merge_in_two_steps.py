import torch
import triton
import triton.language as tl

from workshop import device


@triton.jit
def walk(
    q, k, v, m_of, s_of, acc_of, q_stride, k_head, k_row, v_head, v_row, t, length, parts, scale,
    D: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    head = (tl.program_id(0) // parts).to(tl.int64)
    first = (tl.program_id(0) % parts).to(tl.int64) * length
    end = tl.minimum(first + length, t)
    c = tl.arange(0, D)
    i = tl.arange(0, 16)
    # tl.dot needs 16 rows: the query is in each of them.
    query = tl.load(q + head * q_stride + c[None, :] + tl.zeros((16, 1), tl.int32))
    m = tl.full((16,), -float("inf"), tl.float32)
    s = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    for start in range(first, end, R):
        token = start + tl.arange(0, R)
        ok = token < end
        keys = tl.load(k + head * k_head + token[None, :] * k_row + c[:, None], mask=ok[None, :], other=0.0)
        values = tl.load(v + head * v_head + token[:, None] * v_row + c[None, :], mask=ok[:, None], other=0.0)
        x = tl.where(ok[None, :], tl.dot(query, keys, input_precision="ieee") * scale, -float("inf"))
        m_new = tl.maximum(m, tl.max(x, axis=1))
        weights = tl.exp(x - m_new[:, None])
        rescale = tl.exp(m - m_new)
        s = s * rescale + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(values.dtype), values, acc * rescale[:, None], input_precision="ieee")
        m = m_new
    pid = tl.program_id(0).to(tl.int64)
    tl.store(m_of + pid + i * 0, m, mask=i == 0)
    tl.store(s_of + pid + i * 0, s, mask=i == 0)
    tl.store(acc_of + pid * D + i[:, None] * 0 + c[None, :], acc, mask=i[:, None] == 0)


@triton.jit
def factors(m_of, s_of, parts, P: tl.constexpr):
    """Replaces the maximum of each part by its factor exp(m - maximum) / sum."""
    head = tl.program_id(0).to(tl.int64)
    p = tl.arange(0, P)
    m = tl.load(m_of + head * parts + p, mask=p < parts, other=-float("inf"))
    s = tl.load(s_of + head * parts + p, mask=p < parts, other=0.0)
    factor = tl.exp(m - tl.max(m, axis=0))
    tl.store(m_of + head * parts + p, factor / tl.sum(s * factor, axis=0), mask=p < parts)


@triton.jit
def mix(factor_of, acc_of, out, parts, columns, D: tl.constexpr, B: tl.constexpr):
    """Flat outputs: column i % D of head i // D."""
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    ok = i < columns
    head, c = i // D, i % D
    total = tl.zeros((B,), tl.float32)
    for part in range(parts):
        factor = tl.load(factor_of + head * parts + part, mask=ok, other=0.0)
        total += factor * tl.load(acc_of + (head * parts + part) * D + c, mask=ok, other=0.0)
    tl.store(out + i, total, mask=ok)


def split_decode_attention(q, k, v):
    h, t, d = k.shape
    out = torch.empty((h, d), dtype=q.dtype, device=q.device)
    if h == 0:
        return out
    length = max(1, t // triton.cdiv(3 * device().multiprocessors, h))
    parts = triton.cdiv(t, length)
    m = torch.empty((h, parts), dtype=torch.float32, device=q.device)
    s = torch.empty((h, parts), dtype=torch.float32, device=q.device)
    acc = torch.empty((h, parts, d), dtype=torch.float32, device=q.device)
    strides = q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1)
    walk[(h * parts,)](q, k, v, m, s, acc, *strides, t, length, parts, d**-0.5, D=d, R=32)
    factors[(h,)](m, s, parts, P=triton.next_power_of_2(parts))
    mix[(triton.cdiv(h * d, 64),)](m, acc, out, parts, h * d, D=d, B=64)
    return out
