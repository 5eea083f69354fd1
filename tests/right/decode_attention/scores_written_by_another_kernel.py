import torch
import triton
import triton.language as tl


@triton.jit
def scores_kernel(q_ptr, k_ptr, scores_ptr, q_stride, k_head, k_row, t, scale, D: tl.constexpr, BLOCK: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
    cols = tl.arange(0, D)
    mask = rows < t
    q = tl.load(q_ptr + head * q_stride + cols).to(tl.float32)
    k = tl.load(k_ptr + head * k_head + rows[:, None] * k_row + cols[None, :], mask=mask[:, None], other=0.0)
    scores = tl.sum(q[None, :] * k.to(tl.float32), axis=1) * scale
    tl.store(scores_ptr + head * t + rows, scores, mask=mask)


@triton.jit
def output_kernel(scores_ptr, v_ptr, out_ptr, v_head, v_row, t, D: tl.constexpr, BLOCK: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, D)
    m = -float("inf")
    for start in range(0, t, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        scores = tl.load(scores_ptr + head * t + rows, mask=rows < t, other=-float("inf"))
        m = tl.maximum(m, tl.max(scores, axis=0))
    s = 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(0, t, BLOCK):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = rows < t
        scores = tl.load(scores_ptr + head * t + rows, mask=mask, other=-float("inf"))
        p = tl.exp(scores - m)
        v = tl.load(v_ptr + head * v_head + rows[:, None] * v_row + cols[None, :], mask=mask[:, None], other=0.0)
        s += tl.sum(p, axis=0)
        acc += tl.sum(p[:, None] * v.to(tl.float32), axis=0)
    tl.store(out_ptr + head * D + cols, acc / s)


def decode_attention(q, k, v):
    h, t, d = k.shape
    scores = torch.empty((h, t), dtype=torch.float32, device=q.device)
    out = torch.empty((h, d), dtype=q.dtype, device=q.device)
    if h:
        grid = (h, triton.cdiv(t, 64))
        scores_kernel[grid](q, k, scores, q.stride(0), k.stride(0), k.stride(1), t, d**-0.5, D=d, BLOCK=64)
        output_kernel[(h,)](scores, v, out, v.stride(0), v.stride(1), t, D=d, BLOCK=64)
    return out
