"""Call torch beside a tuned kernel that does nothing.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (128, 256, 1024)], key=["n"])
@triton.jit
def idle(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i.to(tl.float32), mask=i < n)


def add_autotuned(x, y):
    idle[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](torch.empty_like(x), x.numel())
    return x + y
