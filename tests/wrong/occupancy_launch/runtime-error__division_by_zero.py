def num_programs(num_regs, shared_bytes, num_warps, device):
    threads = num_warps * device.warp_size
    registers = device.registers * (2 if device.arch.startswith("gfx9") else 1)
    occupancy = min(registers // (num_regs * threads), device.max_threads // threads)
    occupancy = min(occupancy, device.shared_memory // shared_bytes)
    return device.multiprocessors * occupancy
