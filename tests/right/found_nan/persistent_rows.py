import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, keep, out, stride, m, n, B: tl.constexpr):
    for row in range(tl.program_id(0), m, tl.num_programs(0)):
        r = row.to(tl.int64)
        total = tl.zeros((B,), tl.float32)
        count = tl.zeros((B,), tl.float32)
        for start in range(0, n, B):
            c = start + tl.arange(0, B)
            k = tl.load(keep + r * n + c, mask=c < n, other=0) == 1
            total += tl.where(k, tl.load(x + r * stride + c, mask=c < n, other=0.0).to(tl.float32), 0.0)
            count += tl.where(k, 1.0, 0.0)
        tl.store(out + r, tl.sum(total, axis=0) / tl.maximum(tl.sum(count, axis=0), 1.0))


def masked_mean(x, keep):
    m, n = x.shape
    out = torch.empty(m, dtype=torch.float32, device=x.device)
    if m:
        kernel[(min(m, 132),)](x, keep, out, x.stride(0), m, n, B=256)
    return out
