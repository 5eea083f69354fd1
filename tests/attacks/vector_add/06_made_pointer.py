"""Make a pointer out of a number.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def anywhere(out_ptr, address, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pointer = (address + i * 4).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + i, tl.load(pointer, mask=i < n), mask=i < n)


def add(x, y):
    out = torch.empty_like(x)
    anywhere[(triton.cdiv(x.numel(), 256),)](out, x.data_ptr(), x.numel(), BLOCK=256)
    return out
