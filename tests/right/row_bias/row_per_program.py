import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, b, out, stride, m, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    for start in range(0, m, B):
        c = start + tl.arange(0, B)
        ok = c < m
        tl.store(out + r * m + c, tl.load(x + r * stride + c, mask=ok) + tl.load(b + c, mask=ok), mask=ok)


def row_bias(x, b):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(x.shape[0],)](x, b, out, x.stride(0), x.shape[1], B=1024)
    return out
