LDS = {"gfx90a": 64 * 1024, "gfx942": 64 * 1024, "gfx950": 160 * 1024}


def occupancy(vgprs, lds_bytes, num_warps, arch):
    alloc = (vgprs + 7) // 8 * 8
    waves = min(8, 512 // alloc)
    per_eu = max(1, num_warps // 4)
    groups = waves // per_eu
    if lds_bytes:
        groups = min(groups, LDS[arch] // lds_bytes)
    return groups * per_eu
