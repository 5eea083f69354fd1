import torch
import triton
import triton.language as tl

SPACE = [
    {"BLOCK_SIZE": 256},
    {"BLOCK_SIZE": 1024},
]


@triton.autotune(configs=SPACE, key=["n_elements"])
@triton.jit
def tuned_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)


def add_autotuned(x, y):
    output = torch.empty_like(x)
    n_elements = output.numel()
    if n_elements == 0:
        return output
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    tuned_kernel[grid](x, y, output, n_elements)
    return output
