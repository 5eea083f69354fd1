LDS = {"gfx90a": 64 * 1024, "gfx942": 64 * 1024, "gfx950": 160 * 1024}


def occupancy(vgprs, lds_bytes, num_warps, arch):
    allocated = (vgprs + 7) // 8 * 8
    workgroups = min(8, 512 // allocated)
    if lds_bytes:
        workgroups = min(workgroups, LDS[arch] // lds_bytes)
    return workgroups * num_warps // 4
