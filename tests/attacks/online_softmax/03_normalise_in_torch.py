"""Let the kernel do the exponential, and torch the sum and the division.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def exponential(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n).to(tl.float32)), mask=i < n)


def online_softmax(x):
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    exponential[(triton.cdiv(x.numel(), 256),)](x.contiguous(), out, x.numel(), BLOCK=256)
    return (out / out.sum(dim=-1, keepdim=True)).to(x.dtype)
