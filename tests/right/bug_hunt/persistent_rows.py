import torch
import triton
import triton.language as tl


@triton.jit
def times(a, v):
    return a * v.to(tl.float32)


@triton.jit
def persistent(x_ptr, y_ptr, a, sx, sy, rows, cols, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        c = tl.arange(0, BLOCK)
        v = tl.load(x_ptr + row * sx + c, c < cols, 0.0)
        tl.store(y_ptr + row * sy + c, times(a, v), c < cols)


def scale(x, a):
    rows, cols = x.shape
    y = torch.zeros((rows, cols), dtype=x.dtype, device=x.device)
    if rows:
        persistent[(min(rows, 3),)](x, y, a, x.stride(0), y.stride(0), rows, cols, BLOCK=triton.next_power_of_2(cols))
    return y
