import math

LDS = dict(gfx90a=65536, gfx942=65536, gfx950=163840)


def occupancy(vgprs, lds_bytes, num_warps, arch):
    granules = math.ceil(vgprs / 8)
    waves = min(512 // (8 * granules), 8) if granules else 8
    programs = (waves * 4) // num_warps
    if lds_bytes > 0:
        programs = min(programs, LDS[arch] // lds_bytes)
    return programs * num_warps // 4
