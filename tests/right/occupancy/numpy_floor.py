import numpy as np

LDS = dict(gfx90a=65536, gfx942=65536, gfx950=163840)


def occupancy(vgprs, lds_bytes, num_warps, arch):
    granules = np.ceil(vgprs / 8)
    waves = np.minimum(np.floor(512 / (granules * 8)), 8)
    groups = np.floor(waves * 4 / num_warps)
    if lds_bytes:
        groups = np.minimum(groups, LDS[arch] // lds_bytes)
    return np.floor(groups * num_warps / 4)
