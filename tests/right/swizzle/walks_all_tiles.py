def swizzle(pid, num_m, num_n, group):
    tiles = [
        (row, column)
        for top in range(0, num_m, group)
        for column in range(num_n)
        for row in range(top, min(top + group, num_m))
    ]
    return tiles[pid]
