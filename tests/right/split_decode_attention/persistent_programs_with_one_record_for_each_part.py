import torch
import triton
import triton.language as tl

from workshop import device


@triton.jit
def walk(
    q, k, v, records, q_stride, k_head, k_row, v_head, v_row, t, length, parts, work, scale, D: tl.constexpr,
    R: tl.constexpr,
):  # fmt: skip
    """A record has D + 2 numbers: the weighted sums, the sum of the weights, the maximum."""
    c = tl.arange(0, D)
    item = tl.program_id(0).to(tl.int64)
    while item < work:
        head = item // parts
        token = item % parts * length + tl.arange(0, R)
        end = tl.minimum(item % parts * length + length, t)
        query = tl.load(q + head * q_stride + c).to(tl.float32) * scale
        keys = k + head * k_head + token[:, None] * k_row + c[None, :]
        values = v + head * v_head + token[:, None] * v_row + c[None, :]
        m = -float("inf")
        s = 0.0
        acc = tl.zeros((D,), tl.float32)
        for _ in range(0, length, R):
            ok = token < end
            x = tl.sum(tl.load(keys, mask=ok[:, None], other=0.0).to(tl.float32) * query[None, :], axis=1)
            x = tl.where(ok, x, -float("inf"))
            m_new = tl.maximum(m, tl.max(x, axis=0))
            weights = tl.exp(x - m_new)
            rescale = tl.exp(m - m_new)
            s = s * rescale + tl.sum(weights, axis=0)
            rows = tl.load(values, mask=ok[:, None], other=0.0).to(tl.float32)
            acc = acc * rescale + tl.sum(weights[:, None] * rows, axis=0)
            m = m_new
            token += R
            keys += tl.cast(k_row, tl.int64) * R
            values += tl.cast(v_row, tl.int64) * R
        record = records + item * (D + 2)
        tl.store(record + c, acc)
        tl.store(record + D, s)
        tl.store(record + D + 1, m)
        item += tl.num_programs(0)


@triton.jit
def merge(records, out, parts, D: tl.constexpr, C: tl.constexpr):
    """A program merges C columns of one head."""
    head = (tl.program_id(0) // (D // C)).to(tl.int64)
    c = tl.program_id(0) % (D // C) * C + tl.arange(0, C)
    first = records + head * parts * (D + 2)
    m = -float("inf")
    for part in range(parts):
        m = tl.maximum(m, tl.load(first + part * (D + 2) + D + 1))
    s = 0.0
    acc = tl.zeros((C,), tl.float32)
    for part in range(parts):
        record = first + part * (D + 2)
        weight = tl.exp(tl.load(record + D + 1) - m)
        s += weight * tl.load(record + D)
        acc += weight * tl.load(record + c)
    tl.store(out + head * D + c, acc / s)


def split_decode_attention(q, k, v):
    h, t, d = k.shape
    out = torch.empty((h, d), dtype=q.dtype, device=q.device)
    if h == 0:
        return out
    rows = 16
    programs = 2 * device().multiprocessors
    length = max(1, min(256, t // triton.cdiv(programs, h)), t // 1024)
    parts = triton.cdiv(t, length)
    records = torch.empty((h * parts, d + 2), dtype=torch.float32, device=q.device)
    strides = q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1)
    walk[(min(programs, h * parts),)](
        q, k, v, records, *strides, t, length, parts, h * parts, d**-0.5, D=d, R=rows
    )
    merge[(h * (d // 16),)](records, out, parts, D=d, C=16)
    return out
