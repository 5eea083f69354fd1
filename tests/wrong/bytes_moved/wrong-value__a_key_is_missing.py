def bytes_moved(m, n, element_size):
    b = m * n * element_size
    return {"torch_read": 5 * b + 2 * m * element_size, "torch_written": 3 * b + 2 * m * element_size, "fused_read": b}
