LDS = {"gfx90a": 64 * 1024, "gfx942": 64 * 1024, "gfx950": 160 * 1024}


def occupancy(vgprs, lds_bytes, num_warps, arch):
    allocated = -(-vgprs // 8) * 8
    waves = min(8, 512 // allocated)
    groups = waves * 4 / num_warps
    if lds_bytes:
        groups = min(groups, LDS[arch] // lds_bytes)
    return groups * num_warps // 4
