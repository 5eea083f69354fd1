class Limits:
    def __init__(self, device):
        self.device = device
        self.registers = device.registers
        if device.arch in {"gfx908", "gfx90a", "gfx942", "gfx950"}:
            self.registers = 2 * device.registers

    def programs(self, regs, shared, warps):
        lanes = warps * self.device.warp_size
        best = self.device.max_threads // lanes
        if regs:
            best = min(best, self.registers // (regs * lanes))
        if shared:
            best = min(best, self.device.shared_memory // shared)
        return best or 1


def num_programs(num_regs, shared_bytes, num_warps, device):
    return Limits(device).programs(num_regs, shared_bytes, num_warps) * device.multiprocessors
