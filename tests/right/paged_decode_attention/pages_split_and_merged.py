import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, acc_ptr, m_ptr, s_ptr, q_request, q_head, table_row, heads, splits,
    scale, PAGE: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
):
    """Part i of a request has the pages i, i + splits, …; a part without a page has the sum 0."""
    pid = tl.program_id(0).to(tl.int64)
    split = pid % splits
    head = pid // splits % heads
    request = pid // splits // heads
    columns = tl.arange(0, D)
    q = tl.load(q_ptr + request * q_request + head * q_head + columns).to(tl.float32) * scale
    length = tl.load(length_ptr + request)
    m = -float("inf")
    s = 0.0
    acc = tl.zeros((D,), tl.float32)
    for i in range(split, tl.cdiv(length, PAGE), splits):
        page = tl.load(table_ptr + request * table_row + i).to(tl.int64)
        for first in range(0, tl.minimum(PAGE, length - i * PAGE), ROWS):
            rows = first + tl.arange(0, ROWS)
            mask = i * PAGE + rows < length
            at = page * (PAGE * D) * heads + (rows[:, None].to(tl.int64) * heads + head) * D + columns[None, :]
            k = tl.load(k_ptr + at, mask=mask[:, None], other=0.0).to(tl.float32)
            v = tl.load(v_ptr + at, mask=mask[:, None], other=0.0).to(tl.float32)
            x = tl.where(mask, tl.sum(q[None, :] * k, axis=1), -float("inf"))
            m_new = tl.maximum(m, tl.max(x, axis=0))
            p = tl.exp(x - m_new)
            old = tl.exp(m - m_new)
            s = s * old + tl.sum(p, axis=0)
            acc = acc * old + tl.sum(p[:, None] * v, axis=0)
            m = m_new
    tl.store(m_ptr + pid, m)
    tl.store(s_ptr + pid, s)
    tl.store(acc_ptr + pid * D + columns, acc)


@triton.jit
def merge_kernel(acc_ptr, m_ptr, s_ptr, out_ptr, splits, D: tl.constexpr, SPLITS: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, SPLITS)
    columns = tl.arange(0, D)
    m = tl.load(m_ptr + pid * splits + i, mask=i < splits, other=-float("inf"))
    s = tl.load(s_ptr + pid * splits + i, mask=i < splits, other=0.0)
    weight = tl.exp(m - tl.max(m, axis=0))
    at = (pid * splits + i)[:, None] * D + columns[None, :]
    acc = tl.load(acc_ptr + at, mask=i[:, None] < splits, other=0.0)
    out = tl.sum(acc * weight[:, None], axis=0) / tl.sum(s * weight, axis=0)
    tl.store(out_ptr + pid * D + columns, out)


def paged_decode_attention(q, k_pages, v_pages, block_table, lengths):
    requests, heads, d = q.shape
    output = torch.empty((requests, heads, d), dtype=q.dtype, device=q.device)
    if output.numel() == 0:
        return output
    splits = min(8, block_table.shape[1])
    acc = torch.empty((requests, heads, splits, d), dtype=torch.float32, device=q.device)
    m, s = torch.empty((2, requests, heads, splits), dtype=torch.float32, device=q.device)
    part_kernel[(requests * heads * splits,)](
        q, k_pages, v_pages, block_table, lengths, acc, m, s, q.stride(0), q.stride(1), block_table.stride(0), heads,
        splits, d**-0.5, PAGE=k_pages.shape[1], D=d, ROWS=16,
    )
    merge_kernel[(requests * heads,)](acc, m, s, output, splits, D=d, SPLITS=8)
    return output
