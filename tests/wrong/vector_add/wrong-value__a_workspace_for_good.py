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


workspace = None


def add(x, y):
    global workspace
    n = x.numel()
    if workspace is None or workspace.numel() < n or workspace.dtype != x.dtype:
        workspace = torch.empty(n, dtype=x.dtype, device=x.device)
    output = workspace[:n]
    if n:
        add_kernel[(triton.cdiv(n, 512),)](x, y, output, n, BLOCK_SIZE=512)
    return output.clone()
