def bytes_moved(m: int, n: int, element_size: int) -> dict:
    """Bytes from and to memory."""
    matrix, vector = m * n * element_size, m * element_size
    return dict(
        torch_read=5 * matrix + 2 * vector,
        torch_written=3 * matrix + 2 * vector,
        fused_read=matrix,
        fused_written=matrix,
    )
