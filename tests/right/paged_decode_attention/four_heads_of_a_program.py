import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, out_ptr, q_request, q_head, table_row, heads, groups, scale,
    PAGE: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, TOKENS: tl.constexpr,
):
    """Tiles of (TOKENS, HEADS, D): the heads of a token lie side by side in a page."""
    request = (tl.program_id(0) // groups).to(tl.int64)
    head = tl.program_id(0) % groups * HEADS + tl.arange(0, HEADS)
    d = tl.arange(0, D)
    of_head = head[:, None] * D + d[None, :]
    q_at = q_ptr + request * q_request + head[:, None].to(tl.int64) * q_head + d[None, :]
    q = tl.load(q_at, mask=head[:, None] < heads, other=0.0).to(tl.float32) * scale
    length = tl.load(length_ptr + request)
    m = tl.full((HEADS,), -float("inf"), tl.float32)
    s = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, D), tl.float32)
    for first in range(0, length, TOKENS):
        # PAGE is a multiple of TOKENS, so these tokens lie in one page.
        page = tl.load(table_ptr + request * table_row + first // PAGE).to(tl.int64)
        token = page * PAGE + first % PAGE + tl.arange(0, TOKENS)
        here = first + tl.arange(0, TOKENS) < length
        at = token[:, None, None] * heads * D + of_head[None, :, :]
        mask = here[:, None, None] & (head[None, :, None] < heads)
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        x = tl.where(here[:, None], tl.sum(k * q[None, :, :], axis=2), -float("inf"))
        new = tl.maximum(m, tl.max(x, axis=0))
        p = tl.exp(x - new[None, :])
        old = tl.exp(m - new)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        s = s * old + tl.sum(p, axis=0)
        acc = acc * old[:, None] + tl.sum(p[:, :, None] * v, axis=0)
        m = new
    tl.store(out_ptr + request * heads * D + of_head, acc / s[:, None], mask=head[:, None] < heads)


def paged_decode_attention(q, k_pages, v_pages, block_table, lengths):
    requests, heads, d = q.shape
    out = torch.empty((requests, heads, d), dtype=q.dtype, device=q.device)
    groups = triton.cdiv(heads, 4)
    if requests * groups:
        kernel[(requests * groups,)](
            q, k_pages, v_pages, block_table, lengths, out, q.stride(0), q.stride(1), block_table.stride(0), heads,
            groups, d**-0.5, PAGE=k_pages.shape[1], D=d, HEADS=4, TOKENS=16,
        )
    return out
