def scale(x, a):
    return (x * a).contiguous()
