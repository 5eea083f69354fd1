def occupancy(vgprs, lds_bytes, num_warps, arch):
    lds_left = {"gfx950": 160}.get(arch, 64) * 1024
    blocks = (vgprs + 7) // 8  # granules of 8 registers; 64 granules on each execution unit
    slots = [0, 0, 0, 0]
    per_unit = 0
    while per_unit < 8 and (per_unit + 1) * blocks <= 64:
        per_unit += 1
    free = 4 * per_unit
    placed = 0
    while free >= num_warps and (lds_bytes == 0 or lds_left >= lds_bytes):
        free -= num_warps
        lds_left -= lds_bytes
        placed += 1
    return placed * num_warps // len(slots)
