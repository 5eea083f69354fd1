def num_programs(num_regs, shared_bytes, num_warps, device):
    threads = num_warps * device.warp_size
    registers = device.registers * (2 if device.arch in ("gfx908", "gfx90a", "gfx940", "gfx941", "gfx942", "gfx950") else 1)
    n = min(registers / (num_regs * threads), device.max_threads / threads)
    if shared_bytes:
        n = min(n, device.shared_memory / shared_bytes)
    return int(device.multiprocessors * max(1, n))
