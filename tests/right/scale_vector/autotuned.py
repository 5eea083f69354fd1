import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((256, 2), (1024, 4), (4096, 8))],
    key=["n"],
)
@triton.jit
def kernel(x, out, a, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, a * values, mask=i < n)


def scale_vector(x, a):
    n = x.numel()
    out = torch.empty_like(x)
    if n == 0:
        return out
    kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, float(a), n)
    return out
