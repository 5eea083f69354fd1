import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, low, high, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    ok = i < n
    value = tl.load(x + i, mask=ok)
    value = tl.where(value < low, low, value)
    value = tl.where(value > high, high, value)
    tl.store(out + i, value, mask=ok)


def clamp(x, low, high):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n == 0:
        return out
    kernel[lambda meta: (triton.cdiv(n, meta["B"]),)](x, out, low, high, n, B=256)
    return out
