import torch
import triton
import triton.language as tl
from workshop import device


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, m_ptr, s_ptr, acc_ptr, q_stride, k_head, k_row, v_head, v_row, t, scale, part_length, parts,
    D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0).to(tl.int64)
    head = pid // parts
    part = pid % parts
    first = part * part_length
    end = tl.minimum(first + part_length, t)
    cols = tl.arange(0, D)
    q = tl.load(q_ptr + head * q_stride + cols).to(tl.float32) * scale
    m = -float("inf")
    s = 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(first, end, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        mask = rows < end
        k = tl.load(k_ptr + head * k_head + rows[:, None] * k_row + cols[None, :], mask=mask[:, None], other=0.0)
        v = tl.load(v_ptr + head * v_head + rows[:, None] * v_row + cols[None, :], mask=mask[:, None], other=0.0)
        x = tl.sum(q[None, :] * k.to(tl.float32), axis=1)
        x = tl.where(mask, x, -float("inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        p = tl.exp(x - m_new)
        rescale = tl.exp(m - m_new)
        s = s * rescale + tl.sum(p, axis=0)
        acc = acc * rescale + tl.sum(p[:, None] * v.to(tl.float32), axis=0)
        m = m_new
    tl.store(m_ptr + pid, m)
    tl.store(s_ptr + pid, s)
    tl.store(acc_ptr + pid * D + cols, acc)


@triton.jit
def merge_kernel(m_ptr, s_ptr, acc_ptr, out_ptr, parts, D: tl.constexpr, PARTS: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, D)
    part = tl.arange(0, PARTS)
    mask = part < parts
    m = tl.load(m_ptr + head * parts + part, mask=mask, other=-float("inf"))
    s = tl.load(s_ptr + head * parts + part, mask=mask, other=0.0)
    acc = tl.load(acc_ptr + (head * parts + part)[:, None] * D + cols[None, :], mask=mask[:, None], other=0.0)
    scale = tl.exp(m - tl.max(m, axis=0))
    total = tl.sum(s * scale, axis=0)
    out = tl.sum(acc * scale[:, None], axis=0) / total
    tl.store(out_ptr + head * D + cols, out)


def split_decode_attention(q, k, v):
    h, t, d = k.shape
    out = torch.empty((h, d), dtype=q.dtype, device=q.device)
    if h == 0:
        return out
    wanted = max(1, 2 * device().multiprocessors // h)
    part_length = triton.cdiv(t, wanted)
    parts = triton.cdiv(t, part_length)
    m = torch.empty((h, parts), dtype=torch.float32, device=q.device)
    s = torch.empty((h, parts), dtype=torch.float32, device=q.device)
    acc = torch.empty((h, parts, d), dtype=torch.float32, device=q.device)
    part_kernel[(h * parts,)](
        q, k, v, m, s, acc, q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1), t, d**-0.5, part_length,
        parts, D=d, BLOCK=32,
    )  # fmt: skip
    merge_kernel[(h,)](m, s, acc, out, parts, D=d, PARTS=triton.next_power_of_2(parts))
    return out
