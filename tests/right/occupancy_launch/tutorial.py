def is_cdna(device):
    return device.backend == "hip" and device.arch.startswith("gfx9")


def num_programs(num_regs, shared_bytes, num_warps, device):
    gprs = device.registers * (2 if is_cdna(device) else 1)
    max_num_waves = device.max_threads // device.warp_size
    occupancy = min(gprs // device.warp_size // num_regs, max_num_waves) // num_warps
    occupancy = min(occupancy, device.shared_memory // max(shared_bytes, 1))
    return device.multiprocessors * max(occupancy, 1)
