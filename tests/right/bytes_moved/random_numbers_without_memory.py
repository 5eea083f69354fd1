import torch


def bytes_moved(m, n, element_size):
    dtype = {1: torch.int8, 2: torch.float16, 4: torch.float32, 8: torch.float64}[element_size]
    x = torch.randn(m, n, device="meta").to(dtype)
    y = torch.softmax(x, dim=1)
    return {
        "torch_read": 5 * x.nbytes + 2 * m * element_size,
        "torch_written": 3 * y.nbytes + 2 * m * x.element_size(),
        "fused_read": x.nbytes,
        "fused_written": y.nbytes,
    }
