import torch
import triton
import triton.language as tl


@triton.jit
def unpack(out_ptr, n, start, packed):
    for k in tl.static_range(6):
        tl.store(out_ptr + start + k, (packed >> (10 * k)) & 1023, mask=start + k < n)


def first_kernel(n):
    out = torch.empty(n, dtype=torch.int32)
    for start in range(0, n, 6):
        unpack[(1,)](out, n, start, sum((start + k) << (10 * k) for k in range(6)))
    return out
