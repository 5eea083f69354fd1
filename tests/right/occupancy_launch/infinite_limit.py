import math


def num_programs(num_regs: int, shared_bytes: int, num_warps: int, device) -> int:
    """Programs that fit on the whole device at once."""
    per_program = num_regs * num_warps * device.warp_size
    file = device.registers << int(device.backend == "hip" and "gfx9" in device.arch)
    by_shared = device.shared_memory // shared_bytes if shared_bytes else math.inf
    fits = min(file // per_program, by_shared, device.max_threads // device.warp_size // num_warps)
    return int(device.multiprocessors * max(fits, 1))
