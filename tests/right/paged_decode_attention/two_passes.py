import torch
import triton
import triton.language as tl


@triton.jit
def scores(q, k_ptr, page, start, length, heads, head, PAGE: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, PAGE)
    places = ((page * PAGE + rows) * heads + head)[:, None] * D + tl.arange(0, D)[None, :]
    inside = start + rows < length
    k = tl.load(k_ptr + places, mask=inside[:, None], other=0.0).to(tl.float32)
    return tl.where(inside, tl.sum(k * q[None, :], axis=1), float("-inf")), places, inside


@triton.jit
def kernel(Q, K, V, T, Lengths, Out, sq_b, sq_h, st, heads, factor, PAGE: tl.constexpr, D: tl.constexpr):
    b = (tl.program_id(0) // heads).to(tl.int64)
    head = tl.program_id(0) % heads
    q = tl.load(Q + b * sq_b + head * sq_h + tl.arange(0, D)).to(tl.float32) * factor
    length = tl.load(Lengths + b)
    m = tl.full((PAGE,), float("-inf"), tl.float32)
    for i in range(tl.cdiv(length, PAGE)):
        page = tl.load(T + b * st + i).to(tl.int64)
        x, _, _ = scores(q, K, page, i * PAGE, length, heads, head, PAGE, D)
        m = tl.maximum(m, x)
    top = tl.max(m)
    s = tl.zeros((PAGE,), tl.float32)
    acc = tl.zeros((D,), tl.float32)
    for i in range(tl.cdiv(length, PAGE)):
        page = tl.load(T + b * st + i).to(tl.int64)
        x, places, inside = scores(q, K, page, i * PAGE, length, heads, head, PAGE, D)
        p = tl.exp(x - top)
        s += p
        acc += tl.sum(p[:, None] * tl.load(V + places, mask=inside[:, None], other=0.0), axis=0)
    tl.store(Out + (b * heads + head) * D + tl.arange(0, D), acc / tl.sum(s))


def paged_decode_attention(q, k_pages, v_pages, block_table, lengths):
    o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    b, h, d = q.shape
    if b and h:
        kernel[(b * h,)](
            q, k_pages, v_pages, block_table, lengths, o, q.stride(0), q.stride(1), block_table.stride(0), h,
            1 / d**0.5, PAGE=k_pages.shape[1], D=d,
        )
    return o
