import math


def occupancy(vgprs, lds_bytes, num_warps, arch):
    kib = 160 if arch == "gfx950" else 64
    waves = min(512 // (8 * math.ceil(vgprs / 8)), 8)
    limits = [math.floor(4 * waves / num_warps)]
    if lds_bytes > 0:
        limits.append(math.floor(1024 * kib / lds_bytes))
    return math.floor(min(limits) * num_warps / 4)
