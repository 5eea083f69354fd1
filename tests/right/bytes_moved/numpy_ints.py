import numpy as np


def bytes_moved(m, n, element_size):
    mn = np.int64(m) * np.int64(n)
    reads = np.array([mn, mn + m, mn, mn, mn + m])
    writes = np.array([m, mn, mn, m, mn])
    return {
        "torch_read": reads.sum() * element_size,
        "torch_written": writes.sum() * element_size,
        "fused_read": mn * element_size,
        "fused_written": mn * element_size,
    }
