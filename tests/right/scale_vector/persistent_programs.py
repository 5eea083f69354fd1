import torch
import triton
import triton.language as tl

from workshop import device


@triton.jit
def kernel(x, out, a, n, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) * a, mask=i < n)


def scale_vector(x, a):
    n = x.shape[0]
    out = torch.empty(n, dtype=x.dtype, device=x.device)
    programs = min(triton.cdiv(n, 512), 8 * device().multiprocessors)
    if programs:
        kernel[(programs,)](x, out, a, n, BLOCK=512)
    return out
