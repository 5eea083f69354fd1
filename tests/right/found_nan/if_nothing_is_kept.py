import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, keep, out, stride, n, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    total = tl.zeros((B,), tl.float32)
    count = tl.zeros((B,), tl.int32)
    for start in range(0, n, B):
        c = start + tl.arange(0, B)
        k = tl.load(keep + r * n + c, mask=c < n, other=0) > 0
        v = tl.load(x + r * stride + c, mask=c < n, other=0.0).to(tl.float32)
        total = tl.where(k, total + v, total)
        count += k.to(tl.int32)
    many = tl.sum(count, axis=0)
    mean = 0.0
    if many > 0:
        mean = tl.sum(total, axis=0) / many
    tl.store(out + r, mean)


def masked_mean(x, keep):
    m, n = x.shape
    out = torch.zeros(m, dtype=torch.float32, device=x.device)
    if m:
        kernel[(m,)](x, keep, out, x.stride(0), n, B=128)
    return out
