import torch
import triton
import triton.language as tl


@triton.jit
def from_bits(bits_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    number = tl.zeros((BLOCK,), tl.int32)
    for k in tl.static_range(9):
        number += tl.load(bits_ptr + 9 * i + k, mask=i < n, other=0) << k
    tl.store(out_ptr + i, number, mask=i < n)


def first_kernel(n):
    digits = torch.zeros(1, dtype=torch.int32), torch.ones(1, dtype=torch.int32)
    bits = torch.cat([digits[i >> k & 1] for i in range(n) for k in range(9)])
    out = torch.empty(n, dtype=torch.int32)
    from_bits[(triton.cdiv(n, 128),)](bits, out, n, BLOCK=128)
    return out
