import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.autotune(
    configs=[
        triton.Config({"LANES": 16}, num_warps=2),
        triton.Config({"LANES": 32}, num_warps=4),
        triton.Config({"LANES": 64}, num_warps=8),
    ],
    key=["t", "D"],
)
@triton.jit
def kernel(
    q_ptr, k_ptr, ks_ptr, v_ptr, vs_ptr, out_ptr, q_head, k_head, k_row, ks_head, v_head, v_row, vs_head, t, scale,
    D: tl.constexpr, LANES: tl.constexpr,
):
    """Lane i walks over the tokens i, i + LANES, …; the lanes meet at the end. The tiles are (D, LANES)."""
    head = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, D)[:, None]
    q = tl.load(q_ptr + head * q_head + column).to(tl.float32) * scale
    m = tl.full((LANES,), -1e38, tl.float32)
    s = tl.zeros((LANES,), tl.float32)
    acc = tl.zeros((D, LANES), tl.float32)
    for first in range(0, t, LANES):
        token = first + tl.arange(0, LANES).to(tl.int64)
        here = token < t
        k = tl.load(k_ptr + head * k_head + token[None, :] * k_row + column, mask=here[None, :], other=0)
        v = tl.load(v_ptr + head * v_head + token[None, :] * v_row + column, mask=here[None, :], other=0)
        ks = tl.load(ks_ptr + head * ks_head + token, mask=here, other=0.0)
        vs = tl.load(vs_ptr + head * vs_head + token, mask=here, other=0.0)
        x = tl.where(here, tl.sum(q * k.to(tl.float32), axis=0) * ks, -float("inf"))
        new = tl.maximum(m, x)
        p = tl.exp2(x - new)
        old = tl.exp2(m - new)
        s = s * old + p
        acc = acc * old[None, :] + v.to(tl.float32) * (p * vs)[None, :]
        m = new
    share = tl.exp2(m - tl.max(m, axis=0))
    total = tl.sum(share * s, axis=0)
    result = tl.sum(acc * share[None, :], axis=1) / total
    tl.store(out_ptr + head * D + tl.arange(0, D), result)


def int8_decode_attention(q, k, k_scale, v, v_scale):
    heads, t, d = k.shape
    out = torch.empty((heads, d), dtype=q.dtype, device=q.device)
    if heads:
        kernel[(heads,)](
            q, k, k_scale, v, v_scale, out, q.stride(0), k.stride(0), k.stride(1), k_scale.stride(0), v.stride(0),
            v.stride(1), v_scale.stride(0), t, d**-0.5 * LOG2_E, D=d,
        )
    return out
