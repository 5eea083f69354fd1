LDS = {"gfx90a": 64 * 1024, "gfx942": 64 * 1024, "gfx950": 160 * 1024}


def occupancy(vgprs, lds_bytes, num_warps, arch):
    alloc = (vgprs + 7) // 8 * 8
    groups = min(8, 512 // alloc) * 4 // num_warps
    if lds_bytes:
        groups = min(groups, LDS[arch] // lds_bytes)
    return groups * num_warps // 4
