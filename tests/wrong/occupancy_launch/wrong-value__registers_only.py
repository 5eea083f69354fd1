def num_programs(num_regs, shared_bytes, num_warps, device):
    threads = num_warps * device.warp_size
    registers = device.registers * (2 if device.arch.startswith("gfx9") else 1)
    return device.multiprocessors * (registers // (num_regs * threads))
