import torch
import triton
import triton.language as tl


@triton.jit
def scores_kernel(q_ptr, k_ptr, scores_ptr, q_stride, k_head, k_row, t, scale, D: tl.constexpr, ROWS: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, D)
    q = tl.load(q_ptr + head * q_stride + columns).to(tl.float32)
    for start in range(0, t, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = rows < t
        k = tl.load(k_ptr + head * k_head + rows[:, None] * k_row + columns[None, :], mask=mask[:, None], other=0.0)
        dot = tl.sum(q[None, :] * k.to(tl.float32), axis=1)
        tl.store(scores_ptr + head * t + rows, dot * scale, mask=mask)


def decode_scores(q, k):
    heads, t, d = k.shape
    scores = torch.empty((heads, t), dtype=torch.float32, device=q.device)
    if heads:
        scores_kernel[(heads,)](q, k, scores, q.stride(0), k.stride(0), k.stride(1), t, 1 / d**0.5, D=d, ROWS=64)
    return scores
