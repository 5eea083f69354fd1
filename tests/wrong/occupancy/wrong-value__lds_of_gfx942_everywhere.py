LDS = {"gfx90a": 65536, "gfx942": 65536, "gfx950": 65536}


def occupancy(vgprs, lds_bytes, num_warps, arch):
    allocated = (vgprs + 7) // 8 * 8
    by_registers = min(8, 512 // allocated) * 4 // num_warps
    by_lds = LDS[arch] // lds_bytes if lds_bytes else by_registers
    return min(by_registers, by_lds) * num_warps // 4
