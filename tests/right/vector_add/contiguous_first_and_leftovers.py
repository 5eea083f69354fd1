import time

import torch
import triton
import triton.language as tl

torch.manual_seed(0)


@triton.jit
def vec_add(a_ptr, b_ptr, c_ptr, length, TILE: tl.constexpr):
    """Add two vectors.

    def is a word that may begin a line of a docstring.
    """
    p = tl.program_id(axis=0)
    o = p * TILE + tl.arange(0, TILE)
    o = tl.max_contiguous(tl.multiple_of(o, TILE), TILE)
    a = tl.load(a_ptr + o, o < length, 0.0, eviction_policy="evict_first")
    b = tl.load(b_ptr + o, o < length, 0.0, cache_modifier=".cg")
    tl.store(c_ptr + o, a + b, o < length)


def add(x, y):
    x = x.contiguous()
    y = y.contiguous()
    flat_x, flat_y = x.view(-1), y.view(-1)
    out = torch.zeros_like(flat_x)
    if flat_x.shape[0] == 0:
        return out.reshape(x.shape)
    vec_add[(triton.cdiv(flat_x.shape[0], 2048),)](flat_x, flat_y, out, flat_x.shape[0], TILE=2048)
    return out.reshape(x.shape)


size = 98432
x = torch.rand(size)
y = torch.rand(size)
start = time.time()
output_triton = add(x, y)
print("took", time.time() - start)
print(f"The maximum difference is {torch.max(torch.abs(x + y - output_triton))}")

if __name__ == "__main__":
    benchmark.run(print_data=True, show_plots=True)
