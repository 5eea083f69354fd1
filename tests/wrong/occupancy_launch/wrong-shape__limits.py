CDNA = ('gfx908', 'gfx90a', 'gfx940', 'gfx941', 'gfx942', 'gfx950')

def num_programs(num_regs, shared_bytes, num_warps, device):
    registers = device.registers * (2 if device.backend == 'hip' and device.arch in CDNA else 1)
    threads = num_warps * device.warp_size
    by_registers = registers // (num_regs * threads)
    by_threads = device.max_threads // threads
    by_shared_memory = device.shared_memory // shared_bytes if shared_bytes else by_threads
    return device.multiprocessors * max(1, min(by_registers, by_shared_memory, by_threads)), by_threads
