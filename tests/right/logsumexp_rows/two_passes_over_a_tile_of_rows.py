import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, m, n, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    begin = x + r[:, None].to(tl.int64) * n
    largest = tl.full((R, C), -float("inf"), tl.float32)
    for start in range(0, n, C):
        c = start + tl.arange(0, C)[None, :]
        tile = tl.load(begin + c, mask=(r[:, None] < m) & (c < n), other=-float("inf"))
        largest = tl.maximum(largest, tile.to(tl.float32))
    top = tl.max(largest, axis=1)
    shift = tl.where(top == -float("inf"), 0.0, top)
    sums = tl.zeros((R, C), tl.float32)
    for start in range(0, n, C):
        c = start + tl.arange(0, C)[None, :]
        tile = tl.load(begin + c, mask=(r[:, None] < m) & (c < n), other=-float("inf"))
        sums += tl.exp(tile.to(tl.float32) - shift[:, None])
    tl.store(out + r, shift + tl.log(tl.sum(sums, axis=1)), mask=r < m)


def logsumexp_rows(x):
    m, n = x.shape
    out = torch.empty(m, dtype=torch.float32, device=x.device)
    if m:
        kernel[(triton.cdiv(m, 4),)](x, out, m, n, R=4, C=256)
    return out
