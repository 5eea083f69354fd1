def fits(k, regs, shared, warps, d):
    doubled = 2 if d.backend == "hip" and d.arch.startswith("gfx9") else 1
    threads = k * warps * d.warp_size
    return threads <= d.max_threads and threads * regs <= d.registers * doubled and k * shared <= d.shared_memory


num_programs = lambda regs, shared, warps, d: d.multiprocessors * max(
    [1] + [k for k in range(2, 65) if fits(k, regs, shared, warps, d)]
)
