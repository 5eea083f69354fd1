import torch
import triton
import triton.language as tl


@triton.jit
def tile_kernel(x_ptr, y_ptr, a, sx0, sx1, sy0, sy1, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    x = tl.load(x_ptr + rm[:, None] * sx0 + rn[None, :] * sx1, mask=mask, other=0)
    tl.store(y_ptr + rm[:, None] * sy0 + rn[None, :] * sy1, x * a, mask=mask)


def scale(x, a):
    M, N = x.shape
    y = torch.empty(M, N, dtype=x.dtype, device=x.device)
    grid = lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))
    if M and N:
        tile_kernel[grid](x, y, a, *x.stride(), *y.stride(), M, N, BM=4, BN=64)
    return y
