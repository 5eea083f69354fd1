import torch
import triton
from triton import language as tl


@triton.jit
def my_lanes(BLOCK: tl.constexpr):
    return tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def plus(a, b):
    return a + b


@triton.heuristics({"BLOCK": lambda args: min(1024, max(32, triton.next_power_of_2(args["n"])))})
@triton.jit
def heuristic_add(x, y, out, n, BLOCK: tl.constexpr):
    lanes = my_lanes(BLOCK)
    keep = lanes < n
    tl.store(out + lanes, plus(tl.load(x + lanes, keep), tl.load(y + lanes, keep)), keep)


def add(x, y):
    """x + y, elementwise."""
    out = torch.empty_like(x)
    n = x.numel()
    if n > 0:
        heuristic_add[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
    return out
