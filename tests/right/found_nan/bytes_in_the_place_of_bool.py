import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, keep, out, stride, n, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    total = tl.zeros((B,), tl.float32)
    count = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        c = start + tl.arange(0, B)
        k = tl.load(keep + r * n + c, mask=c < n, other=0).to(tl.float32)
        v = tl.load(x + r * stride + c, mask=c < n, other=0.0).to(tl.float32)
        total += tl.where(k != 0.0, v, 0.0)
        count += k
    many = tl.sum(count, axis=0)
    tl.store(out + r, tl.sum(total, axis=0) / tl.maximum(many, 1.0))


def masked_mean(x, keep):
    m, n = x.shape
    out = torch.empty(m, dtype=torch.float32, device=x.device)
    if m > 0:
        kernel[(m,)](x, keep.to(torch.uint8), out, x.stride(0), n, B=256)
    return out
