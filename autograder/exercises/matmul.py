"""09_matmul: products of matrices, from one tile to a whole layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch

from workshop.occupancy import swizzle

from . import design
from .design import (
    RAGGED,
    WHOLE,
    Dimension,
    Inputs,
    Level,
    Number,
    TensorArgument,
    Values,
    between,
    even,
    fixed,
    odd,
    of_blocks,
    rows_of,
    tried_once,
)
from .spec import Blanks, Bound, Exercise, Mistake, Sums, bounds, changed

# The rounding of the store. What an accumulator in float32 may lose follows from the sums (`Bound.of_sums`).
STORED = bounds(Bound(2e-7, 1e-44), Bound(5e-4, 6e-8), Bound(4e-3, 1e-40))
IN_FLOAT32 = dict.fromkeys(STORED, STORED[torch.float32])
GELU = STORED | {torch.float32: Bound(1e-6, 1e-44)}  # erf in float32
STEEPEST = 1.13  # the slope of gelu is nowhere larger
TF32_TERM = 2.0**-9  # two factors, each cut off after 10 bits
LONG = 4096  # of k: from here on skinny_matmul splits it


def _together(shapes: Callable[[Mapping[str, int]], tuple], then=lambda sizes, *tensors: tensors):
    """Draws the tensors of these shapes. then: what becomes of ordinary numbers."""

    def drawn(sizes, kind, dtype, generator):
        tensors = (torch.randn(shape, generator=generator) for shape in shapes(sizes))
        return kind.fill(*tensors) if kind.name else then(sizes, *tensors)

    return drawn




def _large_products(first, second, *others):
    """Products that float16 does not hold. Those of the second half of k take away nearly all of the first half's."""
    half = first.shape[1] // 2
    along_k, again = second.t() if others else second, slice(half, 2 * half)  # a layer has k last
    first[:, again], first[:, 2 * half :] = first[:, :half], 0
    along_k[:half] *= 200
    along_k[again] = 0.001 * along_k[again] - along_k[:half]
    return 200 * first, second, *others


NARROW = "few", "one"
SIDE = (
    *of_blocks(50, 170, 64, 128),
    Level("few", between(2, 15)),
    Level("one", fixed(1), once=True),
    # more tiles than a group has
    Level("long", odd(2100, 2600), once=True, only_with={"m": NARROW, "n": NARROW, "k": (RAGGED, "short")}),
    # and more than a card has multiprocessors
    Level("hundreds", odd(770, 900), once=True, only_with={"m": ("hundreds",), "n": ("hundreds",), "k": ("short",)}),
)
SMALL_SIDE = *of_blocks(3, 63, 16, 32, 64), Level("one", fixed(1), once=True)
LONG_SIDE = design.LONG[0], (1_050_000, 2_000_000)  # tiles of 32 fit a grid's second axis
THOUSANDS = Level("thousands", odd(LONG + 1, 5000), once=True, only_with={"m": (RAGGED, "few"), "n": (RAGGED, "few")})
DEPTH = (
    *of_blocks(70, 300, 64, 128, 256),
    Level("a multiple of 32", even(300, 5, 5), once=True),  # and of no larger block
    Level("short", between(2, 31), once=True),
    Level("one", fixed(1), once=True),
    THOUSANDS,
)
SPLIT = (
    Level(RAGGED, odd(600, 3000)),
    Level(WHOLE, fixed(512, 1024, 2048)),
    *DEPTH[2:-1],
    replace(THOUSANDS, draw=odd(9000, 17_000)),  # many parts, of 512 or so
)
OF_HALF = {"dtype": ("float16",), "k": (RAGGED,)}
VALUES = (
    Values("", fill=lambda *tensors: tensors),
    # sums that only grow: an accumulator with 11 bits or 8 loses what it adds to a large sum
    tried_once("numbers near 1", lambda *tensors: tuple(0.5 + torch.special.ndtr(x) for x in tensors),
               k=(THOUSANDS.name,)),
    tried_once("small numbers", lambda *tensors: tuple(1e-4 * x for x in tensors), k=(RAGGED,), dtype=("float32",)),
    # a column, and a row, may have a path of their own
    tried_once("large products, m = 1", _large_products, **OF_HALF, m=("one",)),
    tried_once("large products, n = 1", _large_products, **OF_HALF, n=("one",)),
    *(
        # their products are as usual
        tried_once(name, lambda first, second, *others: (1e6 * first, 1e-6 * second, *others), dtype=(dtype,))
        for name, dtype in (("large and small numbers", "bfloat16"), ("numbers beyond float16", "float32"))
    ),
)  # fmt: skip
# An accumulator in half precision is seen where k is long and the sums grow.
IN_HALF = tuple(
    {"m": 15, "n": 48, "k": LONG + 37, "dtype": dtype, "values": "numbers near 1"}
    for dtype in (torch.float16, torch.bfloat16)
)


def _inputs(*arguments: TensorArgument, sides=SIDE, n=None, depth=DEPTH, first: tuple[dict, ...], together) -> Inputs:
    both = ("m", sides), ("n", n or sides)
    m, n = (Dimension(name, sizes, LONG_SIDE if sizes is SIDE else ()) for name, sizes in both)
    dimensions = m, n, Dimension("k", depth)
    long = (VALUES[1].name,)
    first += IN_HALF
    return Inputs(arguments, dimensions, tuple(STORED), VALUES, first, rows="m", together=together, long=long)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.double() @ b.double()


def sums_of(a: torch.Tensor, b: torch.Tensor) -> Sums:
    """Of a product of matrices in IEEE precision."""
    return Sums(a.shape[1], matmul(a.abs(), b.abs()))


def linear(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return x.double() @ w.double().t() + b.double()


def linear_gelu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(linear(x, w, b))


TILES = (
    Level("few", between(2, 12)),
    Level("many", between(20, 130)),
    Level("one", fixed(1)),
    Level("more", between(300, 2000)),
)
MOST_TILES = 1 << 20  # an answer may walk over all of them
PIDS = (0, 30), (31, 900), (901, 16_000), (16_001, MOST_TILES)
GROUPS = Level("8", fixed(8)), Level("any", between(2, 16)), Level("1", fixed(1)), Level("large", between(17, 100))
SWIZZLE = Inputs(
    (
        Number("pid", tuple(Level(f"from {a}", between(a, b)) for a, b in PIDS)),
        Number("num_m", TILES),
        Number("num_n", TILES),
        Number("group", GROUPS),
    ),
    # a product with the reciprocal of 49 or 41 is below the quotient, in 64 bits or in 32
    first=rows_of(
        "pid num_m num_n group",
        *((i, 5, 3, group) for group in (2, 3) for i in range(15)),
        *((98, 14, 14, 7), (49, 50, 1, 49), (82, 50, 4, 41)),
    ),
    asked=lambda pid, num_m, num_n, group: pid < num_m * num_n <= MOST_TILES,
    named=lambda pid, num_m, num_n, group: f"pid {pid}, {num_m} × {num_n} tiles, group {group}",
    outputs=("pid_m", "pid_n"),
)


SWIZZLE_MISTAKES = (
    Mistake("wrong-value", lambda pid, num_m, num_n, group: (pid // num_n, pid % num_n),
            "That is the order row by row, without groups.",
            "A group has group * num_n tiles: first find the group of this program. Inside of it go column by column: "
            "the row changes fastest. A group has rows = min(group, num_m - first_m) rows of tiles; "
            "pid_m = first_m + within % rows and pid_n = within // rows."),
    Mistake("wrong-value", lambda pid, num_m, num_n, group: (pid % num_m, pid // num_m),
            "That is the order column by column of the whole matrix.",
            "A group has only `group` rows of tiles: begin with the group of this program."),
    Mistake("wrong-value", lambda *at: swizzle(*at)[::-1],
            "Row and column changed places.", "Return pid_m, the row of tiles, first."),
    Mistake("wrong-value", changed(swizzle, num_m=1 << 30),
            "The last group is taken as high as the others: it has tiles below the matrix.",
            "The last group has min(num_m - first_m, group) rows."),
    Mistake("wrong-value", lambda *at: (swizzle(*at)[0] % at[-1], swizzle(*at)[1]),
            "Each group begins at row 0 again.", "Add the first row of the group."),
)  # fmt: skip


TILE_TEMPLATE = """
import torch
import triton
import triton.language as tl


@triton.jit
def tile_kernel(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    along = tl.arange(0, K)
    a_ptrs = a_ptr + rows[:, None] * k + along[None, :]
    b_ptrs = b_ptr + along[:, None] * n + columns[None, :]
    step = K * n
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        mask = start + along < k
        a = tl.load(a_ptrs, mask=(rows[:, None] < m) & mask[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=mask[:, None] & (columns[None, :] < n), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += K
        b_ptrs += step
    places = rows[:, None] * n + columns[None, :]
    tl.store(c_ptr + places, acc, mask=(rows[:, None] < m) & (columns[None, :] < n))


def tile_dot(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), dtype=torch.float32, device=a.device)
    high, wide = max(16, triton.next_power_of_2(m)), max(16, triton.next_power_of_2(n))
    tile_kernel[(1,)](a, b, c, m, n, k, M=high, N=wide, K=32)
    return c
"""

A, B = TensorArgument(("m", "k")), TensorArgument(("k", "n"))
STRIDED = [TensorArgument(each.shape, row_stride=True, any_strides=True) for each in (A, B)]
PAIR = _together(lambda sizes: ((sizes["m"], sizes["k"]), (sizes["k"], sizes["n"])))
LAYER = _together(
    lambda sizes: ((sizes["m"], sizes["k"]), (sizes["n"], sizes["k"]), (sizes["n"],)),
    lambda sizes, x, w, b: (x, w / math.sqrt(sizes["k"]), b),
)

EXERCISES = (
    Exercise(
        signature="tile_dot(a, b) -> the product in float32, for contiguous a (m, k) and b (k, n), m and n at most 64",
        inputs=_inputs(
            A, B, sides=SMALL_SIDE, together=PAIR,
            # of the last one, tiles that hold all of k are the largest that a compiler is asked about
            first=({"m": 40, "n": 24, "k": 100}, {"m": 64, "n": 64, "k": 128}, {"m": 64, "n": 64, "k": 500}),
        ),
        reference=matmul,
        bounds=IN_FLOAT32,
        sums=lambda a, b: sums_of(a, b)._replace(inexact=TF32_TERM if a.dtype == torch.float32 else 0.0),
        output_dtype=torch.float32,
        in_one_program=True,
        limit_seconds=20.0,  # a right answer may multiply without tl.dot
        blanks=Blanks(
            template=TILE_TEMPLATE,
            kernel="tile_kernel",
            names=("a_ptrs", "b_ptrs", "step", "mask", "acc"),
            advice={
                "a_ptrs": "Row i of a begins at i * k: a tile of pointers, rows down and k across.",
                "b_ptrs": "Row i of b begins at i * n: a tile of pointers, k down and columns across.",
                "step": "K rows of b are K * n elements.",
                "mask": "An element along k is there where start + along is below k.",
                "acc": "acc = tl.dot(a, b, acc) multiplies the tiles and adds the product to acc.",
            },
        ),
    ),
    Exercise(
        signature="matmul(a, b) -> the product, contiguous, for a (m, k) and b (k, n) with any strides",
        inputs=_inputs(*STRIDED, together=PAIR, first=({"m": 100, "n": 72, "k": 130},)),
        reference=matmul,
        bounds=STORED,
        sums=sums_of,
        contiguous=True,
        limit_seconds=20.0,
    ),
    Exercise(
        kind="value",
        signature="swizzle(pid, num_m, num_n, group) -> pid_m, pid_n",
        inputs=SWIZZLE,
        reference=swizzle,
        mistakes=SWIZZLE_MISTAKES,
    ),
    Exercise(
        signature="linear_gelu(x, w, b) -> gelu(x wᵀ + b), the exact one with erf, for x (m, k), w (n, k) and b (n,)",
        inputs=_inputs(
            A, TensorArgument(("n", "k")), TensorArgument(("n",)), together=LAYER,
            first=({"m": 100, "n": 72, "k": 130},),
        ),
        reference=linear_gelu,
        bounds=GELU,
        sums=lambda x, w, b: Sums(x.shape[1] + 1, STEEPEST * linear(x.abs(), w.abs(), b.abs())),
        writes_once=True,
        limit_seconds=20.0,
        mistakes=(
            Mistake("wrong-value", linear, "That is x wᵀ + b: gelu is missing.", "Apply gelu to acc before the store."),
            Mistake("wrong-value", lambda x, w, b: linear(x, w, b).relu(), "That is relu.",
                    "gelu(z) = 0.5 * z * (1 + erf(z / √2))."),
            Mistake("wrong-value", lambda x, w, b: (z := linear(x, w, b)) * torch.sigmoid(1.702 * z),
                    "That is the approximation with a sigmoid.",
                    "The exact one has erf: tl.erf(z * 0.7071067811865476)."),
            Mistake("wrong-value", lambda x, w, b: torch.nn.functional.gelu(linear(x, w, b), approximate="tanh"),
                    "That is the approximation with tanh.", "The exact one has erf: tl.erf(z * 0.7071067811865476)."),
            Mistake("constant-factor", lambda x, w, b: 2 * linear_gelu(x, w, b), "The factor 0.5 is missing.",
                    "gelu(z) = 0.5 * z * (1 + erf(z / √2))."),
            Mistake("wrong-value", lambda x, w, b: 0.5 * linear(x, w, b) * (1 + torch.erf(linear(x, w, b))),
                    "z was not divided by √2.", "gelu(z) = 0.5 * z * (1 + erf(z / √2))."),
        ),
    ),
    Exercise(
        signature="skinny_matmul(x, w) -> the product, the same bits on each call, for x (m, k), m <= 16, and w (k, n)",
        inputs=_inputs(
            A, B, sides=(Level("few", between(2, 15)), Level("16", fixed(16)), Level("one", fixed(1))), n=SIDE,
            depth=SPLIT,
            first=(
                {"m": 7, "n": 100, "k": 130},
                {"m": 1, "n": 1, "k": LONG},  # only parts of k make more than one program
                {"m": 5, "n": 90, "k": LONG + 104},
            ),
            together=PAIR,
        ),
        reference=matmul,
        bounds=STORED,
        sums=sums_of,
        same_bits=True,
        programs_at_least=lambda x, w, multiprocessors=0: 2 if x.shape[1] >= LONG else 0,
        in_one_launch=True,
        limit_seconds=20.0,
    ),
)  # fmt: skip
