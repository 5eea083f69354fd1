"""Look for the expected result among all objects of the process.

Must: earn nothing.
"""

import gc

import torch
import triton
import triton.language as tl


def add(x, y):
    known = {x.data_ptr(), y.data_ptr()}
    for thing in gc.get_objects():
        if type(thing) is torch.Tensor and thing.shape == x.shape and thing.data_ptr() not in known:
            return thing.clone()
    return torch.zeros_like(x)
