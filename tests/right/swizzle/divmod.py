def swizzle(pid, num_m, num_n, group):
    number, within = divmod(pid, group * num_n)
    column, row = divmod(within, min(group, num_m - number * group))
    return number * group + row, column
