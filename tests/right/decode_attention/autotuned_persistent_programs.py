import torch
import triton
import triton.language as tl

from workshop import device


@triton.autotune(configs=[triton.Config({"R": 16}, num_warps=2), triton.Config({"R": 64})], key=["t", "D"])
@triton.jit
def kernel(q, k, v, out, q_stride, k_head, k_row, v_head, v_row, h, t, scale, D: tl.constexpr, R: tl.constexpr):
    c = tl.arange(0, D)
    head = tl.program_id(0).to(tl.int64)
    while head < h:
        query = tl.load(q + head * q_stride + c).to(tl.float32)
        m = -float("inf")
        s = 0.0
        acc = tl.zeros((D,), tl.float32)
        # From the last block of tokens to the first: the order does not matter.
        start = (tl.cdiv(t, R) - 1) * R
        while start >= 0:
            token = start + tl.arange(0, R).to(tl.int64)
            ok = token < t
            keys = tl.load(k + head * k_head + token[:, None] * k_row + c[None, :], mask=ok[:, None], other=0.0)
            x = tl.sum(query[None, :] * keys.to(tl.float32), axis=1) * scale
            x = tl.where(ok, x, -float("inf"))
            before = m
            m = tl.maximum(m, tl.max(x, axis=0))
            rescale = tl.exp(before - m)
            weights = tl.exp(x - m)
            values = tl.load(v + head * v_head + token[:, None] * v_row + c[None, :], mask=ok[:, None], other=0.0)
            s = s * rescale + tl.sum(weights, axis=0)
            acc = acc * rescale + tl.sum(weights[:, None] * values.to(tl.float32), axis=0)
            start -= R
        tl.store(out + head * D + c, acc / s)
        head += tl.num_programs(0)


def decode_attention(q, k, v):
    h, t, d = k.shape
    out = torch.empty((h, d), dtype=q.dtype, device=q.device)
    if h:
        kernel[(min(h, device().multiprocessors),)](
            q, k, v, out, q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1), h, t, d**-0.5, D=d
        )
    return out
