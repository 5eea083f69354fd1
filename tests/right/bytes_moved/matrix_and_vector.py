def bytes_moved(m, n, element_size):
    b = m * n * element_size
    v = m * element_size
    return {"torch_read": 5 * b + 2 * v, "torch_written": 3 * b + 2 * v, "fused_read": b, "fused_written": b}
