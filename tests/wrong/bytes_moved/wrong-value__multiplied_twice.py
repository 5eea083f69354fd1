def bytes_moved(m, n, element_size):
    elements = {
        "torch_read": 5 * m * n + 2 * m,
        "torch_written": 3 * m * n + 2 * m,
        "fused_read": m * n,
        "fused_written": m * n,
    }
    return {name: count * element_size * element_size for name, count in elements.items()}
