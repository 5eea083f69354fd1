"""Launch a plain kernel, and say in the launch that an autotuner chose it.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)


def add_autotuned(x, y):
    output = torch.empty_like(x)
    n = output.numel()
    space = [{"BLOCK_SIZE": size} for size in (256, 1024)]
    tuned = {"space": space, "choice": 0, "key": ["n_elements"]}
    if n:
        add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256, _tuned=tuned)
    return output
