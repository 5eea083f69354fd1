import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, stride, n, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    best = float("-inf")
    for start in range(0, n, B):
        c = start + tl.arange(0, B)
        block = tl.load(x + r * stride + c, mask=c < n, other=float("-inf")).to(tl.float32)
        best = tl.maximum(best, tl.max(block, axis=0))
    tl.store(out + r, best)


def row_max(x):
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    if len(out):
        kernel[(len(out),)](x, out, x.stride(0), x.shape[1], B=512)
    return out
