import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, SIDE: tl.constexpr):
    pid = tl.program_id(axis=0)
    rows = tl.arange(0, SIDE)
    offsets = pid * SIDE * SIDE + rows[:, None] * SIDE + rows[None, :]
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    y = tl.load(y_ptr + offsets, mask=mask)
    identity = (rows[:, None] == rows[None, :]).to(x.dtype)
    output = tl.dot(x, identity) + y
    tl.store(output_ptr + offsets, output, mask=mask)


def add(x: torch.Tensor, y: torch.Tensor):
    output = torch.empty_like(x)
    assert x.device == y.device and output.device == x.device
    n_elements = output.numel()
    grid = lambda meta: (triton.cdiv(n_elements, meta["SIDE"] ** 2),)
    add_kernel[grid](x, y, output, n_elements, SIDE=4)
    return output
