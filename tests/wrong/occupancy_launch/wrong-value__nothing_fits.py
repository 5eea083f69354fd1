CDNA = ("gfx908", "gfx90a", "gfx940", "gfx941", "gfx942", "gfx950")


def num_programs(num_regs, shared_bytes, num_warps, device):
    registers = device.registers * (2 if device.arch in CDNA else 1)
    threads = num_warps * device.warp_size
    limits = [registers // (num_regs * threads), device.max_threads // threads]
    if shared_bytes:
        limits.append(device.shared_memory // shared_bytes)
    return device.multiprocessors * min(limits)
