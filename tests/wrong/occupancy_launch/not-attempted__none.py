def num_programs(num_regs, shared_bytes, num_warps, device):
    return None
