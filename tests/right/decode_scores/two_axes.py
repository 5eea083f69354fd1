import torch
import triton
import triton.language as tl


@triton.jit
def scores_kernel(
    q_ptr, k_ptr, out_ptr, stride_q, stride_kh, stride_kt, T, scale, D: tl.constexpr, BLOCK_T: tl.constexpr
):
    h = tl.program_id(0).to(tl.int64)
    offs_t = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    offs_d = tl.arange(0, D)
    q = tl.load(q_ptr + h * stride_q + offs_d).to(tl.float32)
    k_ptrs = k_ptr + h * stride_kh + offs_t[:, None].to(tl.int64) * stride_kt + offs_d[None, :]
    k = tl.load(k_ptrs, mask=offs_t[:, None] < T, other=0.0).to(tl.float32)
    scores = tl.sum(k * q[None, :], axis=1) * scale
    tl.store(out_ptr + h * T + offs_t, scores, mask=offs_t < T)


def decode_scores(q, k):
    H, T, D = k.shape
    out = torch.empty((H, T), dtype=torch.float32, device=q.device)
    if out.numel() == 0:
        return out
    grid = (H, triton.cdiv(T, 64))
    scores_kernel[grid](q, k, out, q.stride(0), k.stride(0), k.stride(1), T, D**-0.5, D=D, BLOCK_T=64)
    return out
