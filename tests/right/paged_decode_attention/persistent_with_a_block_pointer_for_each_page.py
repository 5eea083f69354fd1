# needs triton<3.9
import torch
import triton
import triton.language as tl

from workshop import device


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, out_ptr, q_request, q_head, table_row, requests, heads, scale,
    PAGE: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
):
    for job in range(tl.program_id(0), requests * heads, tl.num_programs(0)):
        request = (job // heads).to(tl.int64)
        head = job % heads
        q = tl.load(q_ptr + request * q_request + head.to(tl.int64) * q_head + tl.arange(0, D)).to(tl.float32) * scale
        left = tl.load(length_ptr + request)
        entry = table_ptr + request * table_row
        m = -float("inf")
        s = 0.0
        acc = tl.zeros((D,), tl.float32)
        while left > 0:
            page = tl.load(entry).to(tl.int64)
            tokens = tl.minimum(left, PAGE)
            base = page * PAGE * heads * D + head * D
            k_block = tl.make_block_ptr(k_ptr + base, (tokens, D), (heads * D, 1), (0, 0), (ROWS, D), (1, 0))
            v_block = tl.make_block_ptr(v_ptr + base, (tokens, D), (heads * D, 1), (0, 0), (ROWS, D), (1, 0))
            for first in range(0, tokens, ROWS):
                k = tl.load(k_block, boundary_check=(0,), padding_option="zero").to(tl.float32)
                v = tl.load(v_block, boundary_check=(0,), padding_option="zero").to(tl.float32)
                x = tl.sum(k * q[None, :], axis=1)
                x = tl.where(first + tl.arange(0, ROWS) < tokens, x, -float("inf"))
                m_new = tl.maximum(m, tl.max(x, axis=0))
                p = tl.exp(x - m_new)
                s = s * tl.exp(m - m_new) + tl.sum(p, axis=0)
                acc = acc * tl.exp(m - m_new) + tl.sum(p[:, None] * v, axis=0)
                m = m_new
                k_block = tl.advance(k_block, (ROWS, 0))
                v_block = tl.advance(v_block, (ROWS, 0))
            left -= PAGE
            entry += 1
        tl.store(out_ptr + job.to(tl.int64) * D + tl.arange(0, D), (acc / s).to(out_ptr.dtype.element_ty))


def paged_decode_attention(q, k_pages, v_pages, block_table, lengths):
    requests, heads, d = q.shape
    out = torch.empty((requests, heads, d), dtype=q.dtype, device=q.device)
    if out.numel():
        grid = (min(requests * heads, 4 * device().multiprocessors),)
        kernel[grid](
            q, k_pages, v_pages, block_table, lengths, out, q.stride(0), q.stride(1), block_table.stride(0), requests,
            heads, d**-0.5, PAGE=k_pages.shape[1], D=d, ROWS=16,
        )
    return out
