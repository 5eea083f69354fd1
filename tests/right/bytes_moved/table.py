def bytes_moved(m, n, element_size):
    # (read, written) in elements for max, subtract, exp, sum, divide
    steps = [
        (m * n, m),
        (m * n + m, m * n),
        (m * n, m * n),
        (m * n, m),
        (m * n + m, m * n),
    ]
    return {
        "torch_read": sum(r for r, _ in steps) * element_size,
        "torch_written": sum(w for _, w in steps) * element_size,
        "fused_read": m * n * element_size,
        "fused_written": m * n * element_size,
    }
