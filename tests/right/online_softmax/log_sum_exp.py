import torch
import triton
import triton.language as tl

@triton.jit
def lse_step(lse, x):
    bm = tl.max(x, axis=0)
    block = bm + tl.log(tl.sum(tl.exp(x - bm), axis=0))
    hi = tl.maximum(lse, block)
    lo = tl.minimum(lse, block)
    return hi + tl.log(1.0 + tl.exp(lo - hi))


@triton.jit
def kernel(X, Y, sx, sy, N, BLOCK_N: tl.constexpr):
    i = tl.program_id(0)
    lse = float("-inf")
    n = tl.arange(0, BLOCK_N)
    for j in range(tl.cdiv(N, BLOCK_N)):
        cols = j * BLOCK_N + n
        x = tl.load(X + i * sx + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        lse = lse_step(lse, x)
    for j in range(tl.cdiv(N, BLOCK_N)):
        cols = j * BLOCK_N + n
        x = tl.load(X + i * sx + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        tl.store(Y + i * sy + cols, tl.exp(x - lse), mask=cols < N)


def online_softmax(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.shape[0] > 0:
        kernel[(x.shape[0],)](x, y, x.stride(0), y.stride(0), x.shape[1], BLOCK_N=256)
    return y
