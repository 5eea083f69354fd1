def occupancy(vgprs: int, lds_bytes: int, num_warps: int, arch: str) -> int:
    """Add programs to a compute unit until something runs out."""
    lds = 160 * 1024 if arch == "gfx950" else 64 * 1024
    rounded = -(-max(vgprs, 1) // 8) * 8
    slots = 4 * min(8, 512 // rounded)
    programs = 0
    while (programs + 1) * num_warps <= slots and (programs + 1) * lds_bytes <= lds:
        programs += 1
    return (programs * num_warps) // 4
