"""Print without end, and send a message without end.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


def add(x, y):
    for _ in range(50):
        print("x" * (1 << 20))
    raise ValueError("y" * (64 << 20))
