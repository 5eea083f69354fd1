def num_programs(num_regs, shared_bytes, num_warps, device):
    threads = num_warps * device.warp_size
    occupancy = min(device.registers // (num_regs * threads), device.max_threads // threads)
    if shared_bytes:
        occupancy = min(occupancy, device.shared_memory // shared_bytes)
    return device.multiprocessors * occupancy
