def num_programs(num_regs, shared_bytes, num_warps, device):
    return device.num_sms * (device.registers // (num_regs * num_warps * 32))
