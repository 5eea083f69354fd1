import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (2, 4, 8)], key=["n"])
@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, i < n) + tl.load(y_ptr + i, i < n), i < n)


def add_autotuned(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 2048),)](x, y, out, n, BLOCK=2048)
    return out
