def occupancy(vgprs, lds_bytes, num_warps, arch):
    pass
