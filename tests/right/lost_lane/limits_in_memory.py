import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, limits, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    low, high = tl.load(limits), tl.load(limits + 1)
    value = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(out + i, tl.minimum(tl.maximum(value, low), high), mask=i < n)


def clamp(x, low, high):
    out = torch.empty_like(x)
    limits = torch.tensor([low, high], dtype=torch.float32, device=x.device)
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 256),)](x, limits, out, x.numel(), B=256)
    return out
