"""Raise what is not an Exception.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


class Quiet(BaseException):
    def __str__(self):
        raise SystemExit(0)


def add(x, y):
    raise {0: SystemExit(0), 1: KeyboardInterrupt(), 2: GeneratorExit()}.get(x.numel() % 4, Quiet())
