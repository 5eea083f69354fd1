"""Look for the expected result in the frames of the callers.

Must: earn nothing.
"""

import sys

import torch
import triton
import triton.language as tl


def add(x, y):
    frame = sys._getframe(1)
    while frame is not None:
        for space in (frame.f_locals, frame.f_globals):
            for name, value in list(space.items()):
                if "expected" in name and isinstance(value, torch.Tensor) and value.shape == x.shape:
                    return value.clone()
        frame = frame.f_back
    return torch.zeros_like(x)
