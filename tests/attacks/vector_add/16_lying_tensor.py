"""Return a tensor that says yes to every question.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        if function in (torch.allclose, torch.equal, torch.isclose):
            return True
        return super().__torch_function__(function, types, arguments, options or {})

    def __eq__(self, other):
        return True


def add(x, y):
    return torch.zeros_like(x).as_subclass(Liar)
