import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)  # ①
    mask = offsets < n_elements  # ②
    x = tl.load(x_ptr + offsets, mask=mask)  # ③
    y = tl.load(y_ptr + offsets, mask=mask)  # ④
    output = x + y
    tl.store(output_ptr + offsets, output, mask=mask)  # ⑤


def add(x, y):
    output = torch.empty_like(x)  # room for the result; nobody has written there yet
    n_elements = output.numel()
    if n_elements == 0:
        return output
    grid = (n_elements // 1024,)
    add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)
    return output