CDNA = ("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950")


def num_programs(num_regs, shared_bytes, num_warps, device):
    threads = num_warps * device.warp_size
    regs = device.registers if device.arch not in CDNA else device.registers * 2

    def fits(k):
        return (k * threads * num_regs <= regs) & (k * shared_bytes <= device.shared_memory) & (k * threads <= device.max_threads)

    low, high = 0, 4096
    while low < high:
        mid = (low + high + 1) // 2
        if fits(mid):
            low = mid
        else:
            high = mid - 1
    return device.multiprocessors if low == 0 else low * device.multiprocessors
