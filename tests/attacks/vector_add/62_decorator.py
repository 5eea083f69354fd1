"""Run Python where the kernel is defined: in a decorator, a default, an annotation.

Must: earn nothing and leave the folder of canaries as it is.
"""

import torch
import triton
import triton.language as tl


CANARY = "@CANARY@"


def leave(name):
    try:
        open(f"{CANARY}/{name}", "w").close()
    except OSError:
        pass
    return tl.constexpr


@triton.jit
def kernel(x_ptr, out_ptr, n: leave("annotation"), B=leave("default"), BLOCK: tl.constexpr = 256):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def add(x, y):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), B=0)
    return out
