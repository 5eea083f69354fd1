import torch
import triton
import triton.language as tl


@triton.jit
def kernel(q, k, out, q_stride, k_head, k_row, t, tokens, scale, D: tl.constexpr, B: tl.constexpr):
    """A block of tokens may begin in one head and end in the next."""
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    ok = i < tokens
    head = i // t
    token = i - head * t
    c = tl.arange(0, D)[None, :]
    queries = tl.load(q + head[:, None] * q_stride + c, mask=ok[:, None], other=0.0).to(tl.float32)
    keys = tl.load(k + head[:, None] * k_head + token[:, None] * k_row + c, mask=ok[:, None], other=0.0).to(tl.float32)
    tl.store(out + i, tl.sum(queries * keys, axis=1) * scale, mask=ok)


def decode_scores(q, k):
    h, t, d = k.shape
    scores = torch.empty((h, t), dtype=torch.float32, device=q.device)
    if h * t:
        kernel[(triton.cdiv(h * t, 32),)](
            q, k, scores, q.stride(0), k.stride(0), k.stride(1), t, h * t, d**-0.5, D=d, B=32
        )
    return scores
