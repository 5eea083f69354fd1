import torch, triton
import triton.language as tl

from workshop import DEVICE


@triton.jit
def who_am_i():
    return tl.program_id(0)


@triton.jit
def kernel(o):
    i = who_am_i()
    tl.store(o + i, i.to(tl.int32))


def first_kernel(n):
    o = torch.zeros(n, dtype=torch.int32, device=DEVICE)
    kernel[n, 1, 1](o)
    return o


if __name__ == "__main__":
    print(first_kernel(12))
