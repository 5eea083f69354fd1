"""Matrix products: lesson 9's kernel in any launch, and the course's fastest one.

The fastest has persistent programs, as Triton's tutorial on persistent matrix products, loads tiles through tensor
descriptors, and chooses a tile for each shape.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from workshop.device import device

GROUP = 8  # rows of tiles in a group


class Tile(NamedTuple):
    """A tile of c, how far a step along k goes, and the launch that suits them."""

    m: int
    n: int
    k: int
    stages: int
    warps: int
    speed: float = 1.0  # operations per second of a busy multiprocessor, beside the fastest tile


# The speeds are those of 4096 × 14336 × 4096 in bfloat16 on an H200: nearly every round is full there.
TILES = (
    Tile(128, 256, 64, 3, 8, 1.00),
    Tile(256, 128, 64, 3, 8, 0.93),
    Tile(128, 128, 64, 4, 4, 0.93),
    Tile(64, 256, 64, 4, 4, 0.89),
    Tile(64, 128, 64, 4, 4, 0.56),
)


def tile_for(m: int, n: int, multiprocessors: int) -> Tile:
    """The tile that ends first. In each round every multiprocessor takes a tile; the last round may be nearly empty."""

    def seconds(tile: Tile) -> float:
        tiles = triton.cdiv(m, tile.m) * triton.cdiv(n, tile.n)
        return triton.cdiv(tiles, multiprocessors) * tile.m * tile.n / tile.speed

    return min(TILES, key=seconds)


@triton.jit
def grouped(tile, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    """(first row, first column) of a tile, in groups of GROUP rows of tiles."""
    num_m, num_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    first_m = tile // (GROUP * num_n) * GROUP
    height = tl.minimum(num_m - first_m, GROUP)
    within = tile % (GROUP * num_n)
    return (first_m + within % height) * BLOCK_M, within // height * BLOCK_N


@triton.jit
def store_tile(c_ptr, acc, row, column, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows, columns = row + tl.arange(0, BLOCK_M), column + tl.arange(0, BLOCK_N)
    places = rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(c_ptr + places, acc, mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def lesson_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, a_row, a_column, b_row, b_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, CLAMPED: tl.constexpr,
):  # fmt: skip
    """Lesson 9's product: one tile for each program, loaded through pointers and masks.

    CLAMPED: columns beyond the last one are moved to column 0. Triton then knows no more that columns lie side by side.
    """
    row, column = grouped(tl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP)
    rows = (row + tl.arange(0, BLOCK_M)).to(tl.int64)
    columns = (column + tl.arange(0, BLOCK_N)).to(tl.int64)
    if CLAMPED:
        columns = tl.where(columns < n, columns, 0)
    along = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * a_row + along[None, :] * a_column
    b_ptrs = b_ptr + along[:, None] * b_row + columns[None, :] * b_column
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        mask = start + along < k
        a = tl.load(a_ptrs, mask=(rows[:, None] < m) & mask[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=mask[:, None] & (columns[None, :] < n), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K * a_column
        b_ptrs += BLOCK_K * b_row
    store_tile(c_ptr, acc, row, column, m, n, BLOCK_M, BLOCK_N)


def lesson_matmul(
    a: torch.Tensor, b: torch.Tensor, tile: Tile, group: int = GROUP, clamped: bool = False
) -> torch.Tensor:
    """(m, k) × (k, n), any strides → (m, n), contiguous."""
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    lesson_kernel[(triton.cdiv(m, tile.m) * triton.cdiv(n, tile.n),)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), BLOCK_M=tile.m, BLOCK_N=tile.n, BLOCK_K=tile.k, GROUP=group,
        CLAMPED=clamped, num_stages=tile.stages, num_warps=tile.warps,
    )  # fmt: skip
    return c


@triton.jit
def matmul_kernel(
    a_desc, b_desc, c_desc, c_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, A_TURNED: tl.constexpr, B_TURNED: tl.constexpr,
):  # fmt: skip
    """c = a @ b. The descriptor of a turned operand holds its transpose. Without c_desc, c is stored by pointers."""
    tiles = tl.cdiv(m, BLOCK_M) * tl.cdiv(n, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        row, column = grouped(tile, m, n, BLOCK_M, BLOCK_N, GROUP)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, k, BLOCK_K):
            a = a_desc.load([start, row]).T if A_TURNED else a_desc.load([row, start])
            b = b_desc.load([column, start]).T if B_TURNED else b_desc.load([start, column])
            acc = tl.dot(a, b, acc)
        if c_desc is not None:
            c_desc.store([row, column], acc.to(c_desc.dtype))
        else:
            store_tile(c_ptr, acc, row, column, m, n, BLOCK_M, BLOCK_N)


def describable(x: torch.Tensor) -> bool:
    """A descriptor wants columns side by side, and steps of 16 bytes to the tensor and from row to row."""
    return x.stride(1) == 1 and x.stride(0) * x.element_size() % 16 == 0 and x.data_ptr() % 16 == 0


def operand(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
    """(matrix with a descriptor, whether it is x's transpose). A matrix that no descriptor can take is copied.

    The copy has longer rows. It moves each number once; the product does thousands of operations for each.
    """
    if describable(x):
        return x, False
    if describable(x.T):
        return x.T, True
    rows, columns = x.shape
    step = 16 // x.element_size()
    return x.new_empty((rows, triton.cdiv(columns, step) * step))[:, :columns].copy_(x), False


def matmul(a: torch.Tensor, b: torch.Tensor, tile: Tile | None = None, persistent: bool = True) -> torch.Tensor:
    """(m, k) × (k, n) in float16 or bfloat16, any strides → (m, n), contiguous; sums in float32."""
    (m, k), n = a.shape, b.shape[1]
    tile = tile or tile_for(m, n, device().multiprocessors)
    tiles = triton.cdiv(m, tile.m) * triton.cdiv(n, tile.n)
    programs = min(tiles, device().multiprocessors) if persistent else tiles
    (a, a_turned), (b, b_turned) = operand(a), operand(b)
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)

    def described(x: torch.Tensor, rows: int, columns: int, turned: bool = False) -> TensorDescriptor:
        return TensorDescriptor.from_tensor(x, [columns, rows] if turned else [rows, columns])

    matmul_kernel[(programs,)](
        described(a, tile.m, tile.k, a_turned), described(b, tile.k, tile.n, b_turned),
        described(c, tile.m, tile.n) if describable(c) else None, c, m, n, k,
        BLOCK_M=tile.m, BLOCK_N=tile.n, BLOCK_K=tile.k, GROUP=GROUP, A_TURNED=a_turned, B_TURNED=b_turned,
        num_stages=tile.stages, num_warps=tile.warps,
    )  # fmt: skip
    return c
