"""Softmax in five exercises: naive, online (the quiz), online with masks, fused, and wide."""

from __future__ import annotations

import math

import torch

from .design import (
    FIRST,
    NORMAL,
    OF_OTHER_ROWS,
    RAGGED,
    WHOLE,
    Dimension,
    Inputs,
    Level,
    TensorArgument,
    Values,
    between,
    columns,
    fixed,
    normal_but,
    odd,
    rows,
    spread,
    tried_once,
)
from .softmax_mistakes import MISTAKES
from .spec import Blanks, Bound, Exercise, bounds, integer

# Elementwise: the error of exp and of one rounding of the output. Row sum: the rounding errors of single elements
# average out, so the sum is close to 1 unless it was computed in half precision. tests/test_bounds.py proves that
# these bounds reject zeros, 1/N, a 2% error, a denominator that skips a block, and half-precision accumulation.
BOUNDS = bounds(
    Bound(1e-4, 1e-30, row_sum=5e-6), Bound(1e-3, 1.2e-7, row_sum=8e-5), Bound(8e-3, 1e-30, row_sum=7e-4)
)


def _ascending(shape, dtype, generator):
    """Each block has a larger maximum than all before it: every block has to rescale the running sum.

    The steps are so large that exp overflows against the maximum of the first block alone. In every third row only the
    first element is lower: exp of a later one overflows if its lane alone keeps that maximum.
    """
    m, n = shape
    x = torch.linspace(-100, 100, n).repeat(m, 1)
    x[1::3] = _late((1, n), dtype, generator)
    x += 0.1 * torch.randn(m, n, generator=generator)
    x[1 + (m > 2) :: 3] = torch.where(torch.arange(n) == 0, -200.0, 0.0)
    return x


def _late(shape, dtype, generator):
    """Rows in which a maximum that is renewed too late overflows.

    In the even ones, the later half is larger by so much that exp of one element does not overflow, and the sum of all
    does. In the odd ones, each block is a little larger than the one before it. The largest ones are 0, so that
    logarithms of sums are small, and lose little.
    """
    m, n = shape
    step = math.log(torch.finfo(torch.float32).max / (n - n // 2)) + 0.5
    x = torch.where(torch.arange(n) < n // 2, -step, 0.0).repeat(m, 1)
    x[1::2] = torch.linspace(-200, 0, n)
    return x


def _low(shape, dtype, generator):
    """All elements are far below 0. Only in the second row of three exp of an element is more than 0 in float32."""
    m, n = shape
    x = -6.0 - 3.0 * torch.rand(m, n, generator=generator)
    levels = torch.tensor([-20_000.0, 0.0, -200.0])
    return x + levels[torch.arange(m) % 3][:, None]


def _levels(shape, dtype, generator):
    """Each row has its own level, so what a program keeps from an earlier row shows."""
    m, n = shape
    x = torch.randn(m, n, generator=generator)
    return x + 400.0 * (torch.rand(m, 1, generator=generator) - 0.5) if m > 60 else x


BLOCK_ENDS = torch.tensor([63, 64, 127, 128, 255, 256, 511, 512, 1023, 1024, 2047, 2048])


def _one_large(shape, dtype, generator):
    """One element of each row is far above the others, at an end of a block: a maximum that misses it overflows."""
    m, n = shape
    x = torch.randn(m, n, generator=generator)
    ends = torch.cat([BLOCK_ENDS[n - 1 > BLOCK_ENDS], torch.tensor([n - 1])])
    x[torch.arange(m), ends[torch.arange(m) % len(ends)]] = 120.0
    return x


def _large_end(shape, dtype, generator):
    """The last element of some rows is far above the others: a maximum of the first blocks alone overflows."""
    x = torch.randn(shape, generator=generator)
    x[integer(generator, 0, 1) :: 2, -1:] = 120.0
    return x


def _one_above(shape, dtype, generator):
    """Each of the others counts for nothing, and all of them together do not. The more they are, the lower."""
    low = -16.1 if shape[1] < 1 << 16 else -18.5  # a sum in float32 loses what is lower
    x = low + 6.0 * (torch.arange(shape[0]) % 2)[:, None] - 0.5 * torch.rand(shape, generator=generator)
    x[:, 0] = 0.0
    return x


def _masked(shape, dtype, generator):
    """Rows with 0.93 of their elements -inf, as an attention mask makes them: at the beginning, around the middle, …

    and at the beginning of numbers that are very low, and at the end. Whole blocks are among them.
    """
    m, n = shape
    x = torch.randn(m, n, generator=generator)
    hidden = max(1, int(0.93 * n))
    seen = n - hidden
    for row in range(m):
        start = (0, integer(generator, 0, seen), 0, seen)[row % 4]
        x[row] = 2.0 * x[row] - (20_000.0 if row % 4 == 2 else 0.0)
        x[row, start : start + hidden] = -torch.inf
    return x


def _few_seen(shape, dtype, generator):
    """Rows of -inf with three other numbers, anywhere."""
    x = torch.full(shape, -torch.inf)
    for row in x:
        row[torch.randperm(len(row), generator=generator)[:3]] = torch.randn(3, generator=generator)
    return x


def _heavy_head(shape, dtype, generator):
    """256 terms near 1, then many small terms. Half precision loses the small ones, also in sums per lane."""
    x = 0.25 * torch.randn(shape, generator=generator)
    x[:, 256:] -= 8.0
    return x


def _stairs(shape, dtype, generator):
    """Equal numbers in 8192 columns, then larger ones. All lanes of a block round alike, so their errors add up."""
    m, n = shape
    return 0.3 * (torch.arange(n) // 8192).repeat(m, 1) + torch.randn(m, 1, generator=generator)


def _far(shape, dtype, generator):
    """Finite values from one end of the dtype to the other, in rows of four kinds that take turns.

    Large numbers are far from each other, and below 2.3e38, so that their product with log2(e) is finite too. The
    highest of a row is there once: log(2), which two of them add to it, vanishes beside it.
    """
    m, n = shape
    if dtype == torch.float16:
        x = 65_000.0 * (2.0 * torch.rand(m, n, generator=generator) - 1.0)
        x[0] = -10_500.0 - 54_000.0 * torch.rand(n, generator=generator)
        x[-1] = torch.finfo(dtype).min
        return x
    kinds = (
        2.0 * torch.randn(m, n, generator=generator) - 20_000.0,
        _lowest((m, n), dtype, generator),
        spread(generator, 100, 127, m, n).abs(),
        spread(generator, -20, 127, m, n),
    )
    x = torch.stack([kinds[row % 4][row] for row in range(m)]).to(dtype)
    again = x == x.amax(1, keepdim=True)
    again[torch.arange(m), x.argmax(1)] = False
    again[::4] = False
    return torch.where(again, x - x.abs() / 2, x)


def _lowest(shape, dtype, generator):
    """No other number that stands for -inf is below these. Their products with log2(e) are finite."""
    x = -spread(generator, 100, 127, *shape).abs()
    x[-1:] = -2.2e38 - 1e37 * torch.rand(x[-1:].shape, generator=generator)
    return x


BLOCKS = {"columns": (RAGGED, WHOLE), "rows": ("few",)}  # several blocks to a row
OWN_ROWS = {**BLOCKS, **OF_OTHER_ROWS}  # each row counts: they must not be one of them
AT_ENDS = "one for each end of a block"
EACH_END = {**OWN_ROWS, "rows": (AT_ENDS,)}
PRECISE = {**OWN_ROWS, "dtype": ("float32",)}
VERY_LONG_ROWS = {**PRECISE, "columns": ("tens of thousands",), "rows": ("a pair",)}
LARGE_END = tried_once("some large last elements", _large_end, "huge", rows=())
LOW = tried_once("low values", _low, "negative", **OWN_ROWS | {"columns": (RAGGED,)})
HIDDEN = tried_once("masked", _masked, "masked", **OWN_ROWS | {"columns": (WHOLE, "long")})
FAR = Values("as low and as high as the dtype", about="far", fill=_far, only_with=BLOCKS)
ROW_VALUES = (
    Values("", fill=_levels),
    FAR,
    tried_once("as low as the dtype", _lowest, "far", **PRECISE),
    LARGE_END,
    tried_once("equal values", lambda shape, _, g: torch.full(shape, float(torch.randn((), generator=g))), **BLOCKS),
    tried_once("the first far above the others", _one_above, **PRECISE),
    tried_once("huge values", lambda *how: 200.0 + 40.0 * NORMAL.fill(*how), "huge", **PRECISE),
    tried_once("one large element each", _one_large, "huge", **EACH_END),
    # exp of the first element overflows if only the maximum of a later block is subtracted
    tried_once("largest first", normal_but((FIRST, 120.0)), "descending", **PRECISE),
    tried_once("ascending rows", _ascending, "ascending", **PRECISE),
    LOW,
    tried_once("long rows that rise", _late, "ascending", **VERY_LONG_ROWS),
)
LONG = Level("long", odd(8300, 9500), once=True, only_with={"rows": ("few",), "values": ("masked",)})
MASKED = (
    HIDDEN,
    tried_once("few numbers among -inf", _few_seen, "masked", **OWN_ROWS),
    tried_once("one row all -inf", normal_but((0, -torch.inf)), "all-masked", **OWN_ROWS),
)


def _columns_of(kind: str, draw, *values: str, dtypes=("float32", "float16", "bfloat16"), rows="two") -> Level:
    """Rows so long that a case has two at most, with these values."""
    return Level(kind, draw, once=True, only_with={"rows": (rows,), "values": values, "dtype": dtypes})



# Cut into chunks of 512 to 32768 columns, a row of this length has a number of chunks that is no power of two.
_UNEVEN = between(65_600, 81_900)
WIDE_COLUMNS = (
    _columns_of("uneven", _UNEVEN, "", "long low rows", "long masked rows", "long rows below one number"),
    _columns_of("nine blocks", fixed(73_728), "long ascending rows", dtypes=("float32",)),
    _columns_of("stairs", fixed(24_576), "three stairs", dtypes=("float32",)),
    _columns_of("half", fixed(6000), "many small terms", dtypes=("float16",)),
)
UNEVEN_ROWS = {**OWN_ROWS, "columns": ("uneven",), "rows": ("two",)}
WIDE_VALUES = (
    tried_once("long low rows", _low, "negative", **UNEVEN_ROWS),
    tried_once("long rows below one number", _one_above, **UNEVEN_ROWS, dtype=("float32",)),
    tried_once("long masked rows", _masked, "masked", **UNEVEN_ROWS),
    tried_once("long ascending rows", _ascending, "ascending", columns=("nine blocks",)),
    tried_once("three stairs", _stairs, columns=("stairs",)),
    tried_once("many small terms", _heavy_head, columns=("half",)),
)


def rows_of_a_softmax(
    values: tuple[Values, ...], long: tuple[Level, ...] = (), row_stride: bool = True, first: tuple[dict, ...] = ()
) -> Inputs:
    """What a matrix may be whose rows meet exp."""
    very_long = _columns_of(
        "tens of thousands", between(30_000, 50_000), "long rows that rise", dtypes=("float32",), rows="a pair"
    )
    more = (
        Level(AT_ENDS, fixed(len(BLOCK_ENDS) + 1), once=True, only_with={"values": ("one large element each",)}),
        Level("a pair", fixed(2), once=True, only_with={"columns": (very_long.name,)}),
    )
    if len(long) > 1:
        more += (Level("two", between(1, 2), once=True, only_with={"columns": [each.name for each in long]}),)
    long += (very_long,)
    return Inputs(
        (TensorArgument(("rows", "columns"), row_stride),),
        (Dimension("rows", rows("rows").sizes + more), columns("columns", 1, *long)),
        tuple(BOUNDS),
        values,
        first=({"rows": 4, "columns": 300}, {"rows": 2, "columns": 1024}, {"rows": 3, "columns": 2503}, *first),
        large="rows",
        long=tuple(each.name for each in values if each in (LARGE_END, LOW, HIDDEN)),
    )


# The softmax of a row of one element is 1, unless that is masked.
ONE_MASKED = {"rows": 3, "columns": 1, "values": "one row all -inf"}
PLAIN = rows_of_a_softmax(ROW_VALUES)
WITH_MASKS = rows_of_a_softmax(ROW_VALUES + MASKED, (LONG,), first=(ONE_MASKED,))
WIDE = rows_of_a_softmax(ROW_VALUES + MASKED + WIDE_VALUES, (LONG, *WIDE_COLUMNS), first=(ONE_MASKED,))


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.double(), dim=-1)


ONLINE_TEMPLATE = '''
import torch
import triton
import triton.language as tl


@triton.jit
def online_softmax_kernel(in_ptr, output_ptr, row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    in_max = -float("inf")
    in_exp_sum = 0.0
    for col_idx in range(0, n_cols, BLOCK_SIZE):
        offsets = col_idx + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_ptr + pid * row_stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        in_max_new = tl.maximum(in_max, tl.max(in_data, axis=0))
        in_exp_sum = in_exp_sum * tl.exp(in_max - in_max_new) + tl.sum(tl.exp(in_data - in_max_new), axis=0)
        in_max = in_max_new
    for col_idx in range(0, n_cols, BLOCK_SIZE):
        offsets = col_idx + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_ptr + pid * row_stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        in_exp = tl.exp(in_data - in_max)
        tl.store(output_ptr + pid * output_row_stride + offsets, in_exp / in_exp_sum, mask=mask)


def online_softmax(x):
    n_rows, n_cols = x.shape
    output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if output.numel():
        online_softmax_kernel[(n_rows,)](
            x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=256
        )
    return output
'''


def _softmax(name: str, inputs: Inputs, **more) -> Exercise:
    return Exercise(
        signature=f"{name}(x) -> the softmax of each row of x, as a new contiguous tensor",
        inputs=inputs,
        reference=reference,
        bounds=BOUNDS,
        mistakes=MISTAKES,
        contiguous=True,
        **more,
    )


EXERCISES = (
    _softmax("naive_softmax", WITH_MASKS, reads_per_element=3),
    _softmax(
        "online_softmax",
        PLAIN,
        reads_per_element=2,
        blanks=Blanks(
            template=ONLINE_TEMPLATE,
            kernel="online_softmax_kernel",
            names=("pid", "mask", "in_data", "in_max_new", "in_exp_sum"),
            advice={
                "pid": "One program works on one row: ask Triton which program this is.",
                "mask": "A lane may touch memory only where its column is below n_cols.",
                "in_data": "A row begins at in_ptr + pid * row_stride. Masked-off lanes must be -inf.",
                "in_max_new": "Take the larger of the maximum so far and the maximum of this block.",
                "in_exp_sum": "Rescale the sum so far to the new maximum, then add the exponentials of this "
                "block, which subtract the new maximum, too.",
            },
            slugs={"in_exp_sum": "missing-rescale"},
        ),
    ),
    _softmax("online_softmax_masked", WITH_MASKS),
    _softmax("fused_softmax", WITH_MASKS, reads_per_element=1),
    _softmax(
        "wide_softmax",
        WIDE,
        limit_seconds=30.0,  # long rows: blocks of 128 columns take half of it
    ),
)
