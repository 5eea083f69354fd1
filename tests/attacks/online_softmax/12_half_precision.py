"""Do everything in half precision.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def coarse(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i, mask=i < n, other=float("-inf")).to(tl.float16)
    e = tl.exp((x - tl.max(x, axis=0)).to(tl.float32)).to(tl.float16)
    total = tl.sum(e, axis=0).to(tl.float16)
    tl.store(out_ptr + row * n + i, (e / total).to(tl.float16).to(tl.float32), mask=i < n)


def online_softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        coarse[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
