"""Never come back.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


def add(x, y):
    while True:
        pass
