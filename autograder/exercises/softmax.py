"""Softmax in five exercises: naive, online (the quiz), online with masks, fused, and wide."""

from __future__ import annotations

import torch

from workshop.syllabus import find

from .softmax_mistakes import MISTAKES, ONLINE_MISTAKES
from .softmax_rules import (
    lanes_without_elements,
    lost_low_rows,
    misses_columns,
    more_in_the_sum,
    not_nan,
    not_normalised,
    only_long_rows,
    only_ragged_rows,
    overflowed,
)
from .spec import Blanks, Bound, Case, Exercise, Large, Strided, choice, integer, large_rows, spread

# Elementwise: the error of exp and of one rounding of the output. Row sum: the rounding errors of single elements
# average out, so the sum is close to 1 unless it was computed in half precision. tests/test_bounds.py proves that
# these bounds reject zeros, 1/N, a 2% error, a denominator that skips a block, and half-precision accumulation.
BOUNDS = {
    torch.float32: Bound(1e-4, 1e-30, row_sum=5e-6),
    torch.float16: Bound(1e-3, 1.2e-7, row_sum=8e-5),
    torch.bfloat16: Bound(8e-3, 1e-30, row_sum=7e-4),
}


def _rows(m: int, n: int, row_stride=None, dtype=torch.float32, values=None):
    """A case's argument: an m × n tensor from `values(m, n, generator)`, by default normal numbers."""

    def make(generator):
        x = values(m, n, generator) if values else torch.randn(m, n, generator=generator)
        return (Strided(x.to(dtype), row_stride),)

    return make


def _ascending(m, n, generator):
    """Each block has a larger maximum than all before it: every block has to rescale the running sum.

    The steps are so large that exp overflows against the maximum of the first block alone.
    """
    return torch.linspace(-100, 100, n).repeat(m, 1) + 0.1 * torch.randn(m, n, generator=generator)


def _negative(m, n, generator):
    """All elements are far below 0. From the second row on, exp of every element is 0 in float32."""
    x = -6.0 - 3.0 * torch.rand(m, n, generator=generator)
    x[1:] -= 200.0
    return x


def _levels(m, n, generator):
    """Each row has its own level, so what a program keeps from an earlier row shows."""
    return torch.randn(m, n, generator=generator) + 400.0 * (torch.rand(m, 1, generator=generator) - 0.5)


def _low(m, n, generator):
    return -20_000.0 - 3.0 * torch.rand(m, n, generator=generator)


def _huge(m, n, generator):
    return 200.0 + 40.0 * torch.randn(m, n, generator=generator)


def _largest_first(m, n, generator):
    """exp of the first element overflows if only the maximum of a later block is subtracted."""
    x = torch.randn(m, n, generator=generator)
    x[:, 0] = 120.0
    return x


BLOCK_ENDS = (64, 127, 128, 255, 256, 511, 512, 1023, 1024, 1039)


def _one_large(m, n, generator):
    """One element of each row is far above the others, at an end of a block: a maximum that misses it overflows."""
    x = torch.randn(m, n, generator=generator)
    x[torch.arange(m), torch.tensor(BLOCK_ENDS)] = 120.0
    return x


def _equal(m, n, generator):
    return torch.full((m, n), float(torch.randn((), generator=generator)))


def _narrow(m, n, generator):
    return 0.25 * torch.randn(m, n, generator=generator)


def _masked(hidden: int):
    """Rows that begin with `hidden` times -inf, as an attention mask makes them."""

    def values(m, n, generator):
        x = torch.randn(m, n, generator=generator)
        x[:, :hidden] = -torch.inf
        return x

    return values


def _one_row_masked(m, n, generator):
    x = torch.randn(m, n, generator=generator)
    x[0] = -torch.inf
    return x


def _heavy_head(m, n, generator):
    """256 terms near 1, then many small terms. Half precision loses the small ones, also in sums per lane."""
    x = 0.25 * torch.randn(m, n, generator=generator)
    x[:, 256:] -= 8.0
    return x


def _stairs(m, n, generator):
    """Equal numbers in 8192 columns, then larger ones. All lanes of a block round alike, so their errors add up."""
    return 0.3 * (torch.arange(n) // 8192).repeat(m, 1) + torch.randn(m, 1, generator=generator)


def _far(m, n, generator):
    """Finite values from one end of float32 to the other, in rows of four kinds that take turns.

    Large numbers are far from each other, and below 2.3e38, so that their product with log2(e) is finite too.
    """
    kinds = (
        2.0 * torch.randn(m, n, generator=generator) - 20_000.0,
        -spread(generator, 100, 127, m, n).abs(),
        spread(generator, 100, 127, m, n).abs(),
        spread(generator, -20, 127, m, n),
    )
    return torch.stack([kinds[row % 4][row] for row in range(m)])


def _far_half(m, n, generator):
    """As `_far`, from one end of float16 to the other. The first row is below -10,000."""
    x = 65_000.0 * (2.0 * torch.rand(m, n, generator=generator) - 1.0)
    x[0] = -10_500.0 - 54_000.0 * torch.rand(n, generator=generator)
    return x


def _masked_anywhere(m, n, generator):
    """Rows of n > 4200 with 2100 × -inf in the middle; at the beginning, and then very low values; and at the end."""
    x = torch.randn(m, n, generator=generator)
    start = integer(generator, 100, 1500)
    x[0::3, start : start + 2100] = -torch.inf
    x[1::3] = 2.0 * x[1::3] - 20_000.0
    x[1::3, :2100] = -torch.inf
    x[2::3, -2100:] = -torch.inf
    return x


def _any(rows: tuple[int, int], columns: tuple[int, int], gap: int = 0, values=None):
    """A matrix of random shape, with so many elements between the rows."""

    def make(generator):
        m, n = integer(generator, *rows), integer(generator, *columns)
        return _rows(m, n, n + gap, values=values)(generator)

    return make


COMMON_CASES = (
    Case("4 × 300, ragged", _rows(4, 300), "ragged"),
    Case("2 × 1024", _rows(2, 1024)),
    Case("3 × 700, ascending rows", _rows(3, 700, values=_ascending), "ragged ascending"),
    Case("3 × 300, negative rows", _rows(3, 300, values=_negative), "ragged negative"),
    Case("4 × 300, row stride 352", _rows(4, 300, 352), "ragged strided"),
    Case("5 × 7, shorter than a block", _rows(5, 7), "ragged short"),
    Case("3 × 1, one column", _rows(3, 1), "ragged short"),
    Case("0 × 17, no rows", _rows(0, 17), "empty"),
    Case("66 to 80 × 33, many rows", _any((66, 80), (33, 33), values=_levels), "ragged short many drawn"),
    Case("2 × 520, huge values", _rows(2, 520, values=_huge), "ragged huge"),
    Case("2 × 1100, largest first", _rows(2, 1100, values=_largest_first), "ragged descending"),
    Case("10 × 1040, one large element each", _rows(10, 1040, values=_one_large), "ragged huge"),
    Case("2 × 256, equal values", _rows(2, 256, values=_equal), "equal"),
    Case(
        "4 × 1111, float16",
        _rows(4, 1111, dtype=torch.float16, values=_narrow),
        "ragged half",
    ),
    Case(
        "4 × 1111, bfloat16",
        _rows(4, 1111, dtype=torch.bfloat16, values=_narrow),
        "ragged half",
    ),
    Case("2 × 301 to 1000", _any((2, 2), (301, 1000)), "ragged drawn"),
    Case("1823 × 781", _rows(1823, 781), "ragged many", gpu_only=True),
    Case("512 × 1024, bfloat16", _rows(512, 1024, dtype=torch.bfloat16), "many half", gpu_only=True),
)

FAR_CASES = (
    Case("4 × 300, as low and as high as float32", _rows(4, 300, values=_far), "ragged far"),
    Case("2 × 300, as low and as high as float16", _rows(2, 300, dtype=torch.float16, values=_far_half), "ragged far"),
)

MASKED_CASES = (
    Case("2 × 1400, 1040 × -inf first", _rows(2, 1400, values=_masked(1040)), "ragged masked"),
    Case("1 × 9000, 8300 × -inf first", _rows(1, 9000, values=_masked(8300)), "ragged masked"),
    Case("3 × 300, one row all -inf", _rows(3, 300, values=_one_row_masked), "ragged all-masked"),
    Case(
        "3 × 4200 to 4900, 2100 × -inf anywhere",
        _any((3, 3), (4200, 4900), values=_masked_anywhere),
        "ragged masked drawn",
    ),
)

# Cut into chunks of 512 to 32768 columns, a row of this length has a number of chunks that is no power of two.
_UNEVEN = (65_600, 81_900)

WIDE_CASES = (
    Case("2 × 65,600 to 81,900, row stride 100 larger", _any((2, 2), _UNEVEN, 100), "ragged strided wide drawn"),
    Case("1 × 65,600 to 81,900, negative", _any((1, 1), _UNEVEN, values=_low), "ragged negative wide drawn"),
    Case("1 × 73728, ascending", _rows(1, 73728, values=_ascending), "ascending wide"),  # 9 blocks of 8192
    Case("1 × 24576, three stairs", _rows(1, 24576, values=_stairs), "wide"),
    Case(
        "2 × 6000, float16",
        _rows(2, 6000, dtype=torch.float16, values=_heavy_head),
        "ragged half wide",
    ),
    Case("8 × 131072", _rows(8, 131072), "wide many", gpu_only=True),
)


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


def in_half_precision(source: str, traces: list[dict]) -> str:
    """A remark about a kernel that does not say in which precision it computes."""
    if "float32)" in source or "float64)" in source:
        return ""
    return (
        "No line converts to float32. It is right all the same, because tl.max and tl.sum of a half-precision block "
        "give float32; .to(tl.float32) after the load does not rest on that."
    )


def _large(generator: torch.Generator) -> tuple[Case, ...]:
    shapes = large_rows(generator)
    drawn = [Large(shape, choice(generator, list(BOUNDS)), shape[1] + integer(generator, 0, 9)) for shape in shapes]
    return tuple(Case("{:,} × {:,}".format(*x.shape), lambda _, x=x: (x,), "strided") for x in drawn)


def _softmax(name: str, cases, mistakes=MISTAKES, summaries=(), **more) -> Exercise:
    return Exercise(
        lesson=find(name),
        entry=name,
        signature=f"{name}(x) -> the softmax of each row of x, as a new contiguous tensor",
        cases=cases,
        large=_large,
        reference=reference,
        bounds=BOUNDS,
        mistakes=mistakes,
        rules=(overflowed, lost_low_rows, not_nan, misses_columns),
        last_rules=(not_normalised,),
        summaries=(more_in_the_sum, *summaries),
        remark=in_half_precision,
        contiguous=True,
        **more,
    )


def _online(name: str, cases, **more) -> Exercise:
    """A softmax that keeps its sum from block to block."""
    summaries = (only_ragged_rows, only_long_rows)
    return _softmax(name, cases, MISTAKES + ONLINE_MISTAKES, summaries=summaries, **more)


def _whole_rows(name: str, cases, summaries=(only_ragged_rows,), **more) -> Exercise:
    return _softmax(name, cases, summaries=summaries, **more)


EXERCISES = (
    _whole_rows("naive_softmax", COMMON_CASES + FAR_CASES + MASKED_CASES, reads_per_element=3),
    _online(
        "online_softmax",
        COMMON_CASES + FAR_CASES,
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
                "in_exp_sum": "Rescale the sum so far to the new maximum, then add the block's exponentials.",
            },
            slugs={"in_exp_sum": "missing-rescale"},
        ),
    ),
    _online("online_softmax_masked", COMMON_CASES + FAR_CASES + MASKED_CASES),
    _whole_rows("fused_softmax", COMMON_CASES + FAR_CASES + MASKED_CASES, reads_per_element=1),
    _whole_rows(
        "wide_softmax",
        COMMON_CASES + FAR_CASES + MASKED_CASES + WIDE_CASES,
        (lanes_without_elements, only_ragged_rows),
        limit_seconds=15.0,  # long rows: blocks of 128 columns take half of it
    ),
)
