def swizzle(pid, num_m, num_n, group):
    top = 0
    while pid >= min(group, num_m - top) * num_n:
        pid -= min(group, num_m - top) * num_n
        top += group
    height = min(group, num_m - top)
    return [top + pid % height, pid // height]
