import torch
import triton
import triton.language as tl


@triton.jit
def lanes(start, n, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    i = start + tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    return i, i < n


@triton.autotune(
    configs=[triton.Config({"BLOCK": block, "ROWS": rows}) for block in (128, 512) for rows in (2, 8)], key=["n"]
)
@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    i, mask = lanes(tl.program_id(0) * BLOCK * ROWS, n, BLOCK, ROWS)
    tl.store(output_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def add_autotuned(x, y):
    output = torch.empty_like(x)
    n = output.numel()
    if n:
        add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"] * meta["ROWS"]),)](x, y, output, n)
    return output
