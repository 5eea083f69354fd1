"""01b_tiles: blocks with two dimensions, addresses that come out of memory, and three broken kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from workshop.syllabus import find

from .design import (
    EVEN,
    NORMAL,
    OF_OTHER_ROWS,
    RAGGED,
    WHOLE,
    Dimension,
    Inputs,
    Level,
    Number,
    TensorArgument,
    Values,
    between,
    columns,
    elements,
    even,
    fixed,
    normal_but,
    odd,
    of_all_sizes,
    tried_once,
    with_special_ones,
)
from .spec import Bound, Exercise, Mistake, integer
from .vector_add import ANYTHING, EXACT

# Sums of up to a thousand numbers in float32, in any order; the mean has one division more.
SUMS = {dtype: Bound(1e-5, 1e-4) for dtype in EXACT}


def _at_ends(value: float):
    """`fill` of normal numbers with this value at the end of a row, or at the beginning of the next one."""
    return normal_but(((slice(None, None, 2), -1), value), ((slice(1, None, 2), 0), value))


# Blocks of several rows need many of them, with rows of each length.
ROWS = Dimension(
    "rows",
    (
        Level(RAGGED, odd(37, 200)),
        Level("few", between(3, 6)),
        Level(WHOLE, fixed(64, 128)),
        Level(EVEN, even(200, 3, 3), once=True),  # less than a row of tiles
        Level("none", fixed(0), once=True),
        Level("one", fixed(1), once=True),
        # not of equal rows: in a sum of them, all roundings have one direction
        Level("a thousand", odd(900, 1100), once=True, only_with={"columns": ("short",), **OF_OTHER_ROWS}),
    ),
)
COLUMNS = columns("columns", 1, Level("long", odd(4100, 5100), once=True, only_with={"rows": ("few",)}))
MATRIX = TensorArgument(("rows", "columns"), row_stride=True)
COLUMN = TensorArgument(("rows",))
ROW = TensorArgument(("columns",))
INDEX = TensorArgument(("picked",), dtype=torch.int64, span=lambda sizes: (0, sizes["rows"]))
# Sums of them stay finite, and lose few bits.
LARGE_ONES = tried_once("large numbers", lambda shape, _, g: 3e4 * (0.5 + torch.rand(shape, generator=g)))
# A lane behind the end that reads the last element again must not multiply it by 0: inf * 0 is NaN. Nor must what comes
# behind the first one subtract it.
INFINITE_ENDS = tried_once("infinite ends", _at_ends(torch.inf), "special", columns=(RAGGED, WHOLE))
LARGE_ENDS = tried_once("a large end", _at_ends(9.0))
# Sums of products of such numbers have a small relative error.
NEAR_1 = {"span": lambda sizes: (0.5, 1.5)}
# More than 1024 blocks of 256: the partial results of a row are no block then.
VERY_LONG = {"rows": 2, "columns": 300_001}
KEEP = TensorArgument(("rows", "columns"), dtype=torch.bool, span=lambda sizes: (0, 2))


def matrices(*arguments: TensorArgument, values: tuple[Values, ...] = (NORMAL,), more=(), **named) -> Inputs:
    """What the arguments of an exercise about a matrix may be. more: sizes of cases that come first, too."""
    first = {"rows": 37, "columns": 300}, {"rows": 64, "columns": 256}, *more
    return Inputs(arguments, (ROWS, COLUMNS), tuple(EXACT), values, first, **{"large": "rows"} | named)


def vectors(*more: Number, first: tuple[dict, ...]) -> Inputs:
    """What the arguments of an exercise about one vector may be: the vector and numbers."""
    special = with_special_ones(math.inf, -math.inf)
    arguments = (TensorArgument(("n",)), *more)
    return Inputs(arguments, (elements("n"),), tuple(EXACT), (NORMAL, of_all_sizes(), special), first, large="n")


def _number(low: float, high: float) -> Callable[[torch.Generator], float]:
    return lambda generator: low + (high - low) * float(torch.rand((), generator=generator))


OWN_ROWS = {"rows": (RAGGED, WHOLE), **OF_OTHER_ROWS}
FAR_APART = (Level("far below 0", _number(-1e6, -7e4), only_with={"high": ("far above 0",)}),
             Level("far above 0", _number(7e4, 1e6), only_with={"low": ("far below 0",)}))  # fmt: skip
BELOW_0 = Level("below 0", _number(-0.2, -0.05), only_with={"low": ("below 0",)})


def _without(limit: float) -> Level:
    """No limit on this side: what is infinite stays so."""
    return Level("infinite", fixed(limit), once=True, only_with={"values": (ANYTHING.name,)})


def _some_rows_below_zero(shape, dtype, generator):
    x = torch.randn(shape, generator=generator)
    x[1::2] -= 6
    return x


def _below_zero(shape, dtype, generator):
    """A maximum that begins with 0 is wrong, and so is one that begins with any other number."""
    m, n = shape
    largest = 14 if dtype == torch.float16 else 120
    x = -(2 ** torch.linspace(largest, 2, m))[:, None] * (1 + torch.rand(shape, generator=generator))
    x[m // 2] = -torch.inf
    x[m // 4, shape[1] // 2] = -0.0  # as bits it is the lowest number
    return x


def _gathered(sizes, kind, dtype, generator):
    m, n = sizes["rows"], sizes["columns"]
    # Beside the rows of the table: as many, more, fewer; of a small table, many more.
    count = m + 100 if m < 10 and m % 2 else (m, m + 3, (m + 1) // 2)[m % 3]
    index = torch.randint(0, max(m, 1), (count if m else 0,), generator=generator)
    if m > 2 and integer(generator, 0, 1):  # all in their order, but for two neighbours
        index, one = (torch.arange(count) + max(m - count, 0)) % m, integer(generator, 0, min(m, count) - 2)
        index[one : one + 2] = index[one : one + 2].flip(0)
    return kind.fill((max(m, 1), n), dtype, generator), index


def _kept(sizes, kind, dtype, generator):
    """Half of the elements are kept, and one row keeps nothing. kind: what becomes of the rest."""
    shape = sizes["rows"], sizes["columns"]
    keep = torch.rand(shape, generator=generator) < 0.5
    keep[:1] = False
    return kind.fill(torch.randn(shape, generator=generator), keep), keep


def _infinities(x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    """Of four rows, two have infinite elements where nothing is kept. One keeps -inf, and one keeps both infinities."""
    rows, columns = torch.arange(len(x))[:, None], torch.arange(x.shape[1])
    x = torch.where(~keep & (rows % 2 == 0), torch.where(columns % 3 == 0, torch.inf, -torch.inf), x)
    x = torch.where(keep & (rows % 4 == 1) & (columns % 3 == 0), -torch.inf, x)
    return torch.where(keep & (rows % 4 == 3), torch.where(columns % 2 == 0, torch.inf, -torch.inf), x)


# Rows that are all alike would have an infinite element where another one keeps it.
KEPT = (
    Values("", fill=lambda x, keep: x),
    Values("inf and -inf, kept and not", about="special", fill=_infinities, only_with=OF_OTHER_ROWS),
)


def masked_mean(x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return torch.where(keep, x.double(), 0.0).sum(1) / keep.sum(1).clamp(min=1)


EXERCISES = (
    Exercise(
        signature="outer_add(x, y) -> the matrix of x[i] + y[j], for two contiguous vectors of one dtype",
        inputs=matrices(COLUMN, ROW, values=(NORMAL, of_all_sizes(spare=2))),
        reference=lambda x, y: x.double()[:, None] + y.double(),
        bounds=EXACT,
    ),
    Exercise(
        signature="row_bias(x, b) -> x + b in each row, for a matrix with any row stride and a vector",
        inputs=matrices(MATRIX, ROW, values=(NORMAL, of_all_sizes(spare=2))),
        reference=lambda x, b: x.double() + b.double(),
        bounds=EXACT,
        contiguous=True,
    ),
    Exercise(
        signature="transpose(x) -> x with rows and columns exchanged, contiguous, for a matrix with any row stride",
        inputs=matrices(MATRIX, large="columns", values=(NORMAL, of_all_sizes(), ANYTHING)),
        reference=lambda x: x.double().t(),
        bounds=EXACT,
        contiguous=True,
    ),
    Exercise(
        signature="column_sum(x) -> the sum of each column in float32, for a matrix with any row stride",
        inputs=matrices(MATRIX, large="columns", values=(NORMAL, LARGE_ONES, INFINITE_ENDS)),
        reference=lambda x: x.double().sum(0),
        bounds=SUMS,
        output_dtype=torch.float32,
    ),
    Exercise(
        signature="gather_rows(table, index) -> table[index], for a matrix with any row stride and valid int64 numbers",
        inputs=matrices(
            replace(MATRIX, whole=False), INDEX, together=_gathered, large="picked", values=(NORMAL, ANYTHING)
        ),
        reference=lambda table, index: table.double()[index],
        bounds=EXACT,
        contiguous=True,
    ),
    Exercise(
        lesson=find("lost_lane"),
        signature="clamp(x, low, high) -> x, with what is below low or above high brought to it",
        inputs=vectors(
            Number("low", (Level("below 0", _number(-1, -0.3)), Level("above 0", _number(0.05, 0.2)), *FAR_APART[:1],
                           _without(-math.inf),
                           Level("0", fixed(0.0), only_with={"high": ("above 0",)}))),
            Number("high", (Level("above 0", _number(0.3, 1)), BELOW_0, *FAR_APART[1:],
                            _without(math.inf),
                            Level("0", fixed(0.0), only_with={"low": ("below 0",)}),
                            Level("1", fixed(1), once=True, only_with={"low": ("below 0", "above 0")}))),
            first=(
                {"n": 1000, "low": -0.5, "high": 0.75},
                {"n": 2048, "low": -0.5, "high": 0.5, "values": ANYTHING.name},
                {"n": 700, "low": 0.25, "high": 0.25},
            ),
        ),
        reference=lambda x, low, high: x.double().clamp(low, high),
        bounds=EXACT,
    ),
    Exercise(
        lesson=find("found_race"),
        signature="row_max(x) -> the maximum of each row in the dtype of x, for a matrix with any row stride",
        inputs=matrices(
            replace(MATRIX, span=lambda sizes: (-4, 0)),  # near 0, the largest numbers differ in each dtype
            values=(
                Values("", fill=_some_rows_below_zero),
                # narrower ones are -inf early
                tried_once("below zero, one row -inf", _below_zero, "negative", **OWN_ROWS, dtype=("float32",)),
                LARGE_ENDS,
            ),
            more=(VERY_LONG | {"values": LARGE_ENDS.name},),
        ),
        reference=lambda x: x.double().amax(1) if len(x) else x.new_empty(0).double(),
        bounds=EXACT,
    ),
    Exercise(
        lesson=find("found_nan"),
        signature="masked_mean(x, keep) -> the mean of the kept elements of each row in float32, 0 where none is kept",
        inputs=matrices(replace(MATRIX, whole=False), KEEP, values=KEPT, together=_kept, more=(VERY_LONG,)),
        reference=masked_mean,
        bounds=SUMS,
        output_dtype=torch.float32,
        mistakes=(
            Mistake("nan", lambda x, keep: (x.double() * keep).sum(1) / keep.sum(1).clamp(min=1),
                    "An element that is not kept may be infinite, and inf * 0 is NaN.",
                    "Choose with tl.where(keep, x, 0.0): it computes with neither.", known_by_constant=True),
            Mistake("nan", lambda x, keep: (x.double() * keep).sum(1) / keep.sum(1),
                    "Two things are NaN: inf * 0, where an infinite element is not kept, and 0 / 0, where nothing is.",
                    "Choose with tl.where(keep, x, 0.0), and divide by tl.maximum(count, 1.0).",
                    known_by_constant=True),
            Mistake("nan", lambda x, keep: torch.where(keep, x.double(), 0.0).sum(1) / keep.sum(1),
                    "A row that keeps nothing is 0 / 0, which is NaN.", "Divide by tl.maximum(count, 1.0).",
                    known_by_constant=True),
            Mistake("wrong-value", lambda x, keep: torch.where(keep, x.double(), 0.0).sum(1),
                    "That is the sum of what is kept.", "Divide it by the number of kept elements."),
            Mistake("wrong-value", lambda x, keep: torch.where(keep, x.double(), 0.0).mean(1),
                    "The sum was divided by the length of the row.", "Divide by the number of kept elements."),
        ),
    ),
)  # fmt: skip
