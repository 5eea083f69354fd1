import torch
import triton
import triton.language as tl


@triton.jit
def paged_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, output_ptr, q_request, q_head, most, heads, scale,
    PAGE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    request = (pid // heads).to(tl.int64)
    head = pid % heads
    length = tl.load(lengths_ptr + request)
    cols = tl.arange(0, D)
    q = tl.load(q_ptr + request * q_request + head * q_head + cols).to(tl.float32) * scale
    m = -float("inf")
    s = 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(0, length, PAGE):
        tokens = start + tl.arange(0, PAGE)
        mask = tokens < length
        page = tl.load(table_ptr + request * most + tokens // PAGE, mask=mask, other=0).to(tl.int64)
        rows = page * PAGE + tokens % PAGE
        places = (rows * heads + head)[:, None] * D + cols[None, :]
        k = tl.load(k_ptr + places, mask=mask[:, None], other=0.0).to(tl.float32)
        v = tl.load(v_ptr + places, mask=mask[:, None], other=0.0).to(tl.float32)
        x = tl.where(mask, tl.sum(q[None, :] * k, axis=1), -float("inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        weights = tl.exp(x - m_new)
        rescale = tl.exp(m - m_new)
        s = s * rescale + tl.sum(weights, axis=0)
        acc = acc * rescale + tl.sum(weights[:, None] * v, axis=0)
        m = m_new
    tl.store(output_ptr + (request * heads + head) * D + cols, acc / s)


def paged_decode_attention(q, k_pages, v_pages, block_table, lengths):
    requests, heads, d = q.shape
    output = torch.empty((requests, heads, d), dtype=q.dtype, device=q.device)
    if output.numel():
        paged_kernel[(requests * heads,)](
            q, k_pages, v_pages, block_table, lengths, output, q.stride(0), q.stride(1), block_table.shape[1],
            heads, d**-0.5, PAGE=k_pages.shape[1], D=d,
        )  # fmt: skip
    return output
