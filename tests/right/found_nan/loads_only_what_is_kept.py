import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, keep, out, stride, n, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    total = 0.0
    count = 0.0
    for start in range(0, n, B):
        c = start + tl.arange(0, B)
        kept = tl.load(keep + r * n + c, mask=c < n, other=False).to(tl.int1)
        total += tl.sum(tl.load(x + r * stride + c, mask=kept, other=0.0).to(tl.float32), axis=0)
        count += tl.sum(kept.to(tl.float32), axis=0)
    tl.store(out + r, tl.where(count > 0, total / tl.maximum(count, 1.0), 0.0))


def masked_mean(x, keep):
    out = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    if len(out):
        kernel[(len(out),)](x, keep, out, x.stride(0), x.shape[1], B=512)
    return out
