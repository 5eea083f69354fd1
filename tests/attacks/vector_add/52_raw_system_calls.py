"""Go around the filter: 32-bit calls, x32 calls, clone3, io_uring.

Must: earn nothing.
"""

import ctypes
import mmap
import os

import torch
import triton
import triton.language as tl


def machine_code(code):
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


def add(x, y):
    libc = ctypes.CDLL(None)
    ring = libc.syscall(425, 8, ctypes.create_string_buffer(120))  # io_uring_setup
    child = libc.syscall(435, ctypes.create_string_buffer(88), 88)  # clone3
    if child == 0:
        os._exit(0)
    if x.numel() % 2:
        machine_code(b"\xb8\x02\x00\x00\x00\xcd\x80\xc3")  # fork by int 0x80
    machine_code(b"\xb8\x29\x00\x00\x40\x0f\x05\xc3")  # socket by x32
    return x + y
