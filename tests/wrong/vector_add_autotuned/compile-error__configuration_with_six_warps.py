import torch
import triton
import triton.language as tl


CONFIGS = [triton.Config({"BLOCK": b}, num_warps=w) for b in (512, 1024, 2048, 4096) for w in (4, 6, 8)]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def tuned_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def add_autotuned(x, y):
    out = torch.empty_like(x)
    n = out.numel()
    if n == 0:
        return out
    tuned_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
    return out
