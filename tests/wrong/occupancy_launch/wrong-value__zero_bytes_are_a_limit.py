import torch
import triton
import triton.language as tl

CDNA = ("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950")


def num_programs(num_regs, shared_bytes, num_warps, device):
    threads = num_warps * device.warp_size
    registers = device.registers * (2 if device.arch in CDNA else 1)
    by_regs = registers // (num_regs * threads)
    by_shared = device.shared_memory // shared_bytes if shared_bytes else 0
    by_threads = device.max_threads // threads
    return device.multiprocessors * max(1, min(by_regs, by_shared, by_threads))
