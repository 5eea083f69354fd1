CDNA = ("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950")


def num_programs(num_regs, shared_bytes, num_warps, device):
    threads = num_warps * device.warp_size
    registers = device.registers * (2 if device.backend == "hip" and device.arch in CDNA else 1)
    limits = [registers // (num_regs * threads), device.max_threads // threads]
    if shared_bytes:
        limits.append(device.shared_memory // shared_bytes)
    return device.multiprocessors * max(1, min(limits))
