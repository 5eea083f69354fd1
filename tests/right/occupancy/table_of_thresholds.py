import bisect

STEPS = [64, 72, 80, 96, 128, 168, 256, 512]  # most registers for 8, 7, ... 1 waves
LDS = dict.fromkeys(("gfx90a", "gfx942"), 65536) | {"gfx950": 163840}


def occupancy(vgprs, lds_bytes, num_warps, arch):
    waves = 8 - bisect.bisect_left(STEPS, vgprs)
    groups = (4 * waves) // num_warps
    groups = min(groups, LDS[arch] // (lds_bytes or 1))
    return (groups * num_warps) // 4
