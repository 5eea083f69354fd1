def bytes_moved(m, n, element_size):
    b = rows * n * element_size
    return {"torch_read": b, "torch_written": b, "fused_read": b, "fused_written": b}
