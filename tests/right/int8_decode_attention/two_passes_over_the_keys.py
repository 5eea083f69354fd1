import torch
import triton
import triton.language as tl


@triton.jit
def scores_of(q, k_ptr, k_row, ks_ptr, rows, columns, t):
    inside = rows < t
    k = tl.load(k_ptr + rows[:, None] * k_row + columns[None, :], mask=inside[:, None], other=0).to(tl.float32)
    x = tl.sum(k * q[None, :], axis=1) * tl.load(ks_ptr + rows, mask=inside, other=0.0)
    return tl.where(inside, x, -float("inf"))


@triton.jit
def kernel(
    q_ptr, k_ptr, ks_ptr, v_ptr, vs_ptr, out_ptr, q_head, k_head, k_row, v_head, v_row, heads, t, scale,
    D: tl.constexpr, ROWS: tl.constexpr,
):
    for h in range(tl.program_id(0), heads, tl.num_programs(0)):
        head = h.to(tl.int64)
        columns = tl.arange(0, D)
        q = tl.load(q_ptr + head * q_head + columns).to(tl.float32) * scale
        top = tl.full((ROWS,), -float("inf"), tl.float32)
        for start in range(0, t, ROWS):
            rows = start + tl.arange(0, ROWS).to(tl.int64)
            top = tl.maximum(top, scores_of(q, k_ptr + head * k_head, k_row, ks_ptr + head * t, rows, columns, t))
        m = tl.max(top, axis=0)
        sums = tl.zeros((ROWS,), tl.float32)
        acc = tl.zeros((ROWS, D), tl.float32)
        for start in range(0, t, ROWS):
            rows = start + tl.arange(0, ROWS).to(tl.int64)
            p = tl.exp(scores_of(q, k_ptr + head * k_head, k_row, ks_ptr + head * t, rows, columns, t) - m)
            sums += p
            p = p * tl.load(vs_ptr + head * t + rows, mask=rows < t, other=0.0)
            at = v_ptr + head * v_head + rows[:, None] * v_row + columns[None, :]
            acc += p[:, None] * tl.load(at, mask=rows[:, None] < t, other=0).to(tl.float32)
        tl.store(out_ptr + head * D + columns, tl.sum(acc, axis=0) / tl.sum(sums, axis=0))


def int8_decode_attention(q, k, k_scale, v, v_scale):
    heads, t, d = k.shape
    out = torch.empty((heads, d), dtype=q.dtype, device=q.device)
    if heads:
        kernel[(min(heads, 1024),)](
            q, k, k_scale.contiguous(), v, v_scale.contiguous(), out, q.stride(0), k.stride(0), k.stride(1),
            v.stride(0), v.stride(1), heads, t, d**-0.5, D=d, ROWS=32,
        )
    return out
