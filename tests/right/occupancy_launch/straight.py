def num_programs(num_regs, shared_bytes, num_warps, device):
    threads = num_warps * device.warp_size
    registers = device.registers
    if device.backend == "hip" and device.arch.split(":")[0] in ("gfx908", "gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"):
        registers *= 2
    limits = [device.max_threads // threads, registers // (num_regs * threads)]
    if shared_bytes > 0:
        limits.append(device.shared_memory // shared_bytes)
    return device.multiprocessors * max(1, min(limits))
