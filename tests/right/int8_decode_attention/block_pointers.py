# needs triton<3.9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, k_scale_ptr, v_ptr, v_scale_ptr, out_ptr, q_head, k_head, k_row, ks_head, ks_row, v_head, v_row,
    vs_head, vs_row, t, root, D: tl.constexpr, T: tl.constexpr,
):
    h = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + h * q_head + d).to(tl.float32)
    k_block = tl.make_block_ptr(k_ptr + h * k_head, (t, D), (k_row, 1), (0, 0), (T, D), (1, 0))
    v_block = tl.make_block_ptr(v_ptr + h * v_head, (t, D), (v_row, 1), (0, 0), (T, D), (1, 0))
    ks_block = tl.make_block_ptr(k_scale_ptr + h * ks_head, (t,), (ks_row,), (0,), (T,), (0,))
    vs_block = tl.make_block_ptr(v_scale_ptr + h * vs_head, (t,), (vs_row,), (0,), (T,), (0,))
    top = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(0, t, T):
        k = tl.load(k_block, boundary_check=(0,), padding_option="zero").to(tl.float32)
        ks = tl.load(ks_block, boundary_check=(0,), padding_option="zero")
        scores = tl.sum(k * q[None, :], axis=1) * (ks / root)
        scores = tl.where(start + tl.arange(0, T) < t, scores, -float("inf"))
        new = tl.maximum(top, tl.max(scores, axis=0))
        p = tl.exp(scores - new)
        old = tl.exp(top - new)
        v = tl.load(v_block, boundary_check=(0,), padding_option="zero").to(tl.float32)
        vs = tl.load(vs_block, boundary_check=(0,), padding_option="zero")
        acc = acc * old + tl.sum(v * (p * vs)[:, None], axis=0)
        total = total * old + tl.sum(p, axis=0)
        top = new
        k_block = tl.advance(k_block, (T, 0))
        v_block = tl.advance(v_block, (T, 0))
        ks_block = tl.advance(ks_block, (T,))
        vs_block = tl.advance(vs_block, (T,))
    tl.store(out_ptr + h * D + d, (acc / total).to(out_ptr.dtype.element_ty))


def int8_decode_attention(q, k, k_scale, v, v_scale):
    heads, t, d = k.shape
    out = torch.empty((heads, d), dtype=q.dtype, device=q.device)
    if heads > 0:
        kernel[(heads,)](
            q, k, k_scale, v, v_scale, out, q.stride(0), k.stride(0), k.stride(1), *k_scale.stride(), v.stride(0),
            v.stride(1), *v_scale.stride(), t, d**0.5, D=d, T=32,
        )
    return out
