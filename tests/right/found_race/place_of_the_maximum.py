import torch
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, n, stride, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at, best = 0, float("-inf")
    for start in range(0, n, B):
        c = start + tl.arange(0, B)
        x = tl.load(x_ptr + row * stride + c, mask=c < n, other=float("-inf")).to(tl.float32)
        m, i = tl.max(x, axis=0, return_indices=True)
        at = tl.where(m > best, start + i, at)
        best = tl.maximum(best, m)
    tl.store(o_ptr + row, tl.load(x_ptr + row * stride + at))


def row_max(x):
    m, n = x.shape
    out = torch.empty(m, dtype=x.dtype, device=x.device)
    if m:
        k[(m,)](x, out, n, x.stride(0), B=256)
    return out
