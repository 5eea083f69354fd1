def bytes_moved(m, n, element_size):
    b = m * n * element_size
    return {"torch_read": 5 * b, "torch_written": 3 * b, "fused_read": b, "fused_written": b}
