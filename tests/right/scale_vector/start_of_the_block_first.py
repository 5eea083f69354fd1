import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, y_ptr, a, n, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = x * a
    tl.store(y_ptr + offsets, y, mask=mask)


def scale_vector(x, a):
    y = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return y
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)  # noqa: E731
    scale_kernel[grid](x, y, a, n, BLOCK_SIZE=1024)
    return y
