import torch
import triton
import triton.language as tl
from workshop import DEVICE

@triton.autotune(configs=[triton.Config({"BLOCK_SIZE": b, "EXTRA": e}) for b, e in ((512, 1), (1024, 1), (2048, 0))], key=["n_elements"])
@triton.jit
def tuned_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr, EXTRA: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)
def add_autotuned(x, y):
    output = torch.empty_like(x)
    n = x.numel()
    if n:
        tuned_kernel[lambda m: (max(1, n // m["BLOCK_SIZE"] + m["EXTRA"] * (n % m["BLOCK_SIZE"] > 0)),)](x, y, output, n)
    return output
