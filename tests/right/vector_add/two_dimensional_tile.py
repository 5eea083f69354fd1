import torch
import triton
import triton.language as L

ROWS = 8


@triton.jit
def sum_of_tiles(a, b, c, total, R: L.constexpr, C: L.constexpr):
    first = L.program_id(0) * R * C
    tile = first + L.arange(0, R)[:, None] * C + L.arange(0, C)[None, :]
    inside = tile < total
    left = L.load(a + tile, mask=inside, other=0.0)
    right = L.load(b + tile, mask=inside, other=0.0)
    L.store(c + tile, left + right, mask=inside)


def add(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError("add takes two tensors of one shape and dtype")
    c = torch.empty_like(a)
    if a.numel() == 0:
        return c
    sum_of_tiles[(triton.cdiv(a.numel(), ROWS * 64), 1)](a, b, c, a.numel(), R=ROWS, C=64)
    return c
