"""Write the kernel in assembly.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    total = tl.inline_asm_elementwise("add.f32 $0, $1, $2;", "=f,f,f", [x, y], tl.float32, True, 1)
    tl.store(out_ptr + i, total, mask=i < n)


def add(x, y):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out
