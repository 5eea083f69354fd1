import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK_SIZE": 256}), triton.Config({"BLOCK_SIZE": 2048}, num_warps=8)], key=["n_elements"])
@triton.jit
def tuned_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    for s in range(tl.program_id(0) * BLOCK_SIZE, n_elements, tl.num_programs(0) * BLOCK_SIZE):
        o = s + tl.arange(0, BLOCK_SIZE)
        m = o < n_elements
        tl.store(output_ptr + o, tl.load(x_ptr + o, mask=m) + tl.load(y_ptr + o, mask=m), mask=m)

def add_autotuned(x, y):
    output = torch.empty_like(x)
    if output.numel():
        tuned_kernel[(8,)](x, y, output, output.numel())
    return output
