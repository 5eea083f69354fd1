import functools

import torch
import triton
import triton.language as tl

@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)



launches = []


@functools.lru_cache
def grid(n):
    launches.append(n)
    return (triton.cdiv(n, 256),)


def add(x, y):
    output = torch.empty_like(x)
    if output.numel():
        add_kernel[grid(output.numel())](x, y, output, output.numel(), BLOCK_SIZE=256)
    return output
