def occupancy(vgprs, lds_bytes, num_warps, arch):
    return min(8, 512 // ((vgprs + 7) // 8 * 8))
