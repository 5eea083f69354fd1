import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, out_ptr, q_request, q_head, table_row, heads, root,
    PAGE: tl.constexpr, D: tl.constexpr, TOKENS: tl.constexpr,
):
    pid = tl.program_id(0).to(tl.int64)
    request, head = pid // heads, pid % heads
    d = tl.arange(0, D)
    q = tl.load(q_ptr + request * q_request + head * q_head + d).to(tl.float32)
    n = tl.load(length_ptr + request)
    m = -float("inf")
    s = 0.0
    acc = tl.zeros((D,), tl.float32)
    for first in range(0, n, TOKENS):
        token = first + tl.arange(0, TOKENS)
        here = token < n
        page = tl.load(table_ptr + request * table_row + token // PAGE, mask=here, other=0).to(tl.int64)
        at = ((page * PAGE + token % PAGE) * heads + head)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at, mask=here[:, None], other=0.0).to(tl.float32)
        x = tl.where(here, tl.sum(k * q[None, :], axis=1) / root, -float("inf"))
        new = tl.maximum(m, tl.max(x, axis=0))
        p = tl.exp(x - new)
        v = tl.load(v_ptr + at, mask=here[:, None], other=0.0).to(tl.float32)
        acc = acc * tl.exp(m - new) + tl.sum(p[:, None] * v, axis=0)
        s = s * tl.exp(m - new) + tl.sum(p, axis=0)
        m = new
    tl.store(out_ptr + pid * D + d, acc / s)


def paged_decode_attention(q, k_pages, v_pages, block_table, lengths):
    b, h, d = q.shape
    out = torch.empty((b, h, d), dtype=q.dtype, device=q.device)
    if b * h:
        kernel[(b * h,)](
            q, k_pages, v_pages, block_table, lengths, out, q.stride(0), q.stride(1), block_table.stride(0), h,
            d**0.5, PAGE=k_pages.shape[1], D=d, TOKENS=64,
        )
    return out
