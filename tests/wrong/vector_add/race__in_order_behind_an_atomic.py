import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, counter_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    start = pid * BLOCK_SIZE
    offsets = start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    tl.atomic_add(counter_ptr, 1)
    before = tl.load(output_ptr + start - 1, mask=start > 0, other=0.0)
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, tl.where(before == before, x + y, 0.0), mask=mask)


def add(x, y):
    output = torch.empty_like(x)
    counter = torch.zeros(1, dtype=torch.int32, device=x.device)
    n = output.numel()
    if n:
        add_kernel[(triton.cdiv(n, 256),)](x, y, output, counter, n, BLOCK_SIZE=256)
    return output
