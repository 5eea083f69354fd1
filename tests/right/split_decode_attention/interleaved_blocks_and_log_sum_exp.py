import torch
import triton
import triton.language as tl

from workshop import device


@triton.jit
def walk(q, k, v, lse, mean, q_stride, k_head, k_row, v_head, v_row, t, parts, scale, D: tl.constexpr, R: tl.constexpr):
    """Part p takes the blocks p, p + parts, p + 2 parts, ... It stores its own attention, and log(sum(exp(scores)))."""
    pid = tl.program_id(0).to(tl.int64)
    head, part = pid // parts, pid % parts
    c = tl.arange(0, D)
    query = tl.load(q + head * q_stride + c).to(tl.float32)
    m = -float("inf")
    s = 0.0
    acc = tl.zeros((D,), tl.float32)
    for block in range(part, tl.cdiv(t, R), parts):
        token = block * R + tl.arange(0, R)
        ok = token < t
        keys = tl.load(k + head * k_head + token[:, None] * k_row + c[None, :], mask=ok[:, None], other=0.0)
        x = tl.where(ok, tl.sum(keys.to(tl.float32) * query[None, :], axis=1) * scale, -float("inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        weights = tl.exp(x - m_new)
        values = tl.load(v + head * v_head + token[:, None] * v_row + c[None, :], mask=ok[:, None], other=0.0)
        rescale = tl.exp(m - m_new)
        s = s * rescale + tl.sum(weights, axis=0)
        acc = acc * rescale + tl.sum(weights[:, None] * values.to(tl.float32), axis=0)
        m = m_new
    tl.store(lse + pid, m + tl.log(s))
    tl.store(mean + pid * D + c, acc / s)


@triton.jit
def merge(lse, mean, out, parts, D: tl.constexpr, P: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, D)
    p = tl.arange(0, P)
    largest = tl.full((P,), -float("inf"), tl.float32)
    for start in range(0, parts, P):
        ok = start + p < parts
        largest = tl.maximum(largest, tl.load(lse + head * parts + start + p, mask=ok, other=-float("inf")))
    m = tl.max(largest, axis=0)
    s = tl.zeros((P,), tl.float32)
    acc = tl.zeros((D,), tl.float32)
    for start in range(0, parts, P):
        ok = start + p < parts
        place = head * parts + start + p
        weight = tl.exp(tl.load(lse + place, mask=ok, other=-float("inf")) - m)
        s += weight
        means = tl.load(mean + place[:, None] * D + c[None, :], mask=ok[:, None], other=0.0)
        acc += tl.sum(weight[:, None] * means, axis=0)
    tl.store(out + head * D + c, acc / tl.sum(s, axis=0))


def split_decode_attention(q, k, v):
    h, t, d = k.shape
    out = torch.empty((h, d), dtype=q.dtype, device=q.device)
    if h:
        # A part has at least one block, and a block at least one token.
        wanted = triton.cdiv(2 * device().multiprocessors, h)
        rows = 16 if t >= 16 * wanted else 4
        parts = min(wanted, triton.cdiv(t, rows))
        lse = torch.empty((h, parts), dtype=torch.float32, device=q.device)
        mean = torch.empty((h, parts, d), dtype=torch.float32, device=q.device)
        strides = q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1)
        walk[(h * parts,)](q, k, v, lse, mean, *strides, t, parts, d**-0.5, D=d, R=rows)
        merge[(h,)](lse, mean, out, parts, D=d, P=16)
    return out
