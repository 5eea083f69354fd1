def fits(groups, vgprs, lds_bytes, num_warps, arch):
    """Whether so many workgroups fit a compute unit."""
    granules = -(-vgprs // 8)
    waves_per_unit = -(-groups * num_warps // 4)
    lds = 160 * 1024 if arch == "gfx950" else 64 * 1024
    return waves_per_unit <= 8 and waves_per_unit * granules <= 64 and groups * lds_bytes <= lds


def occupancy(vgprs, lds_bytes, num_warps, arch):
    groups = 0
    while fits(groups + 1, vgprs, lds_bytes, num_warps, arch):
        groups += 1
    return groups * num_warps // 4
