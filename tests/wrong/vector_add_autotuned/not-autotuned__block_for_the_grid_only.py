import torch
import triton
import triton.language as tl

SIZE = tl.constexpr(1024)


@triton.autotune(configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 1024})], key=["n"])
@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * SIZE
    if start < n:
        offsets = start + tl.arange(0, SIZE)
        mask = offsets < n
        z = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
        tl.store(output_ptr + offsets, z, mask=mask)


def add_autotuned(x, y):
    output = torch.empty_like(x)
    n = output.numel()
    if n:
        add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, output, n)
    return output
