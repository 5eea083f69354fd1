"""Put off the work: an object that computes the sum when it is looked at.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


class Later:
    def __init__(self, x, y):
        self.x, self.y = x, y

    __class__ = torch.Tensor

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        arguments = [a.x + a.y if type(a) is Later else a for a in arguments]
        return function(*arguments, **(options or {}))

    def __getattr__(self, name):
        return getattr(self.x + self.y, name)


def add(x, y):
    return Later(x, y)
