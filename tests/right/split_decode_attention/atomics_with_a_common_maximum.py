import torch
import triton
import triton.language as tl

from workshop import device


@triton.jit
def scores_of(q, k, head, token, end, q_stride, k_head, k_row, scale, D: tl.constexpr):
    c = tl.arange(0, D)
    query = tl.load(q + head * q_stride + c).to(tl.float32) * scale
    places = k + head * k_head + token[:, None] * k_row + c[None, :]
    keys = tl.load(places, mask=token[:, None] < end, other=0.0).to(tl.float32)
    return tl.where(token < end, tl.sum(keys * query[None, :], axis=1), -float("inf"))


@triton.jit
def find_maximum(q, k, m_of, q_stride, k_head, k_row, t, length, parts, scale, D: tl.constexpr, R: tl.constexpr):
    head = (tl.program_id(0) // parts).to(tl.int64)
    first = (tl.program_id(0) % parts).to(tl.int64) * length
    end = tl.minimum(first + length, t)
    largest = tl.full((R,), -float("inf"), tl.float32)
    for start in range(first, end, R):
        token = start + tl.arange(0, R)
        largest = tl.maximum(largest, scores_of(q, k, head, token, end, q_stride, k_head, k_row, scale, D))
    tl.atomic_max(m_of + head, tl.max(largest, axis=0))


@triton.jit
def add_values(
    q, k, v, m_of, s_of, acc_of, q_stride, k_head, k_row, v_head, v_row, t, length, parts, scale,
    D: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    head = (tl.program_id(0) // parts).to(tl.int64)
    first = (tl.program_id(0) % parts).to(tl.int64) * length
    end = tl.minimum(first + length, t)
    c = tl.arange(0, D)
    m = tl.load(m_of + head)
    s = tl.zeros((R,), tl.float32)
    acc = tl.zeros((D,), tl.float32)
    for start in range(first, end, R):
        token = start + tl.arange(0, R)
        weights = tl.exp(scores_of(q, k, head, token, end, q_stride, k_head, k_row, scale, D) - m)
        places = v + head * v_head + token[:, None] * v_row + c[None, :]
        values = tl.load(places, mask=token[:, None] < end, other=0.0).to(tl.float32)
        s += weights
        acc += tl.sum(weights[:, None] * values, axis=0)
    tl.atomic_add(s_of + head, tl.sum(s, axis=0))
    tl.atomic_add(acc_of + head * D + c, acc)


@triton.jit
def divide(s_of, acc_of, out, n, D: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    acc = tl.load(acc_of + i, mask=i < n, other=0.0)
    tl.store(out + i, acc / tl.load(s_of + i // D, mask=i < n, other=1.0), mask=i < n)


def split_decode_attention(q, k, v):
    h, t, d = k.shape
    out = torch.empty((h, d), dtype=q.dtype, device=q.device)
    if h == 0:
        return out
    length = max(1, t // triton.cdiv(2 * device().multiprocessors, h))
    parts = triton.cdiv(t, length)
    m = torch.full((h,), -float("inf"), dtype=torch.float32, device=q.device)
    s = torch.zeros((h,), dtype=torch.float32, device=q.device)
    acc = torch.zeros((h, d), dtype=torch.float32, device=q.device)
    keys, values = (q.stride(0), k.stride(0), k.stride(1)), (v.stride(0), v.stride(1))
    find_maximum[(h * parts,)](q, k, m, *keys, t, length, parts, d**-0.5, D=d, R=32)
    add_values[(h * parts,)](q, k, v, m, s, acc, *keys, *values, t, length, parts, d**-0.5, D=d, R=32)
    divide[(triton.cdiv(h * d, 128),)](s, acc, out, h * d, D=d, B=128)
    return out
