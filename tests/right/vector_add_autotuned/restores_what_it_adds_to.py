import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK_SIZE": 512}), triton.Config({"BLOCK_SIZE": 1024})],
    key=["n_elements"],
    restore_value=["output_ptr"],
)
@triton.jit
def tuned_kernel(y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    old = tl.load(output_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, old + y, mask=mask)


def add_autotuned(x, y):
    output = x.clone()
    n_elements = output.numel()
    if n_elements == 0:
        return output
    tuned_kernel[lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)](y, output, n_elements)
    return output
