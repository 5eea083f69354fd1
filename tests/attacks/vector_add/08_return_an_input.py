"""Return an input.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def touch(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr))


def add(x, y):
    if x.numel():
        touch[(1,)](x)
    return x
