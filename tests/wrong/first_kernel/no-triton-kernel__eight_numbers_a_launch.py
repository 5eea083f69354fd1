import torch
import triton
import triton.language as tl


@triton.jit
def store_eight(out_ptr, n, a, b, c, d, e, f, g, h):
    tl.store(out_ptr + a, a, mask=a < n)
    tl.store(out_ptr + b, b, mask=b < n)
    tl.store(out_ptr + c, c, mask=c < n)
    tl.store(out_ptr + d, d, mask=d < n)
    tl.store(out_ptr + e, e, mask=e < n)
    tl.store(out_ptr + f, f, mask=f < n)
    tl.store(out_ptr + g, g, mask=g < n)
    tl.store(out_ptr + h, h, mask=h < n)


def first_kernel(n):
    out = torch.empty(n, dtype=torch.int32)
    for i in range(0, n, 8):
        store_eight[(1,)](out, n, *range(i, i + 8))
    return out
