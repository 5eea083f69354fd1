import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": b, "PROGRAMS": p}, num_warps=w)
        for b in (256, 512, 1024, 2048)
        for p in (264, 528, 1056, 2112)
        for w in (4, 8)
    ],
    key=["n"],
)
@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, PROGRAMS * BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(o_ptr + i, tl.load(x_ptr + i, i < n) + tl.load(y_ptr + i, i < n), i < n)


def add_autotuned(x, y):
    out = torch.empty_like(x)
    if x.numel():
        kernel[lambda meta: (meta["PROGRAMS"],)](x, y, out, x.numel())
    return out
