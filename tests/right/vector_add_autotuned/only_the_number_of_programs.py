import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"PROGRAMS": programs}) for programs in (264, 528, 1056)], key=["n"])
@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK)
        tl.store(output_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


def add_autotuned(x, y):
    output = torch.empty_like(x)
    n = output.numel()
    if n:
        add_kernel[lambda meta: (min(meta["PROGRAMS"], 4096),)](x, y, output, n, BLOCK=1024)
    return output
