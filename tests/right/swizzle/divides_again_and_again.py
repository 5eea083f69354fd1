def swizzle(pid, num_m, num_n, group):
    full = num_m // group * group * num_n  # tiles in groups that are whole
    if pid < full:
        number, rest = pid // (group * num_n), pid % (group * num_n)
        return number * group + rest % group, rest // group
    last = num_m % group
    return num_m - last + (pid - full) % last, (pid - full) // last
