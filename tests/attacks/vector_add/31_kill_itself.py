"""Kill the process, or make it crash.

Must: earn nothing.
"""

import ctypes
import os
import signal

import torch
import triton
import triton.language as tl


def add(x, y):
    if x.numel() % 2:
        ctypes.string_at(1)
    os.kill(os.getpid(), signal.SIGKILL)
