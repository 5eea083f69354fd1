import math


def bytes_moved(m, n, element_size):
    bytes_of = lambda *shape: float(math.prod(shape)) * element_size
    mn, v = bytes_of(m, n), bytes_of(m)
    result = {}
    result["fused_read"] = result["fused_written"] = mn
    result["torch_read"] = mn + (mn + v) + mn + mn + (mn + v)
    result["torch_written"] = v + mn + mn + v + mn
    return result
