"""Rules about patterns in the numbers. Each one holds for every exercise."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..exercises.cases import OVERFLOWING, Tag
from ..exercises.design import TensorArgument
from ..exercises.spec import Mistake
from ..text import many
from ..verdict import Finding
from .comparison import agrees
from .observation import Observation, place_in_words


def known_mistake(o: Observation) -> Finding | None:
    return as_mistake(o, o.mistake) if o.mistake else None


def as_mistake(o: Observation, mistake: Mistake) -> Finding:
    advice = mistake.advice[0].lower() + mistake.advice[1:]
    return Finding(mistake.slug, o.worst_in_words, mistake.explanation, advice, sure=True)


def unwritten(o: Observation) -> Finding | None:
    c = o.wrong
    if c is None or not bool((left := o.left_as_they_were).any()):
        return None
    count = f"{many(int(left.sum()), 'element was', 'elements were')} never written, of {left.numel()}."
    if not o.evidence.stores:
        return Finding(
            "unwritten-output",
            count,
            "No line of the kernel stores anything. What stands below a `return` is not part of the kernel.",
            "end the kernel with tl.store, and take a `return` above it out: a kernel returns nothing.",
        )
    if left.all():
        return Finding(
            "unwritten-output",
            count,
            "The store is missing, or it writes to another place, or its mask is true for too few lanes.",
            "store the result at output_ptr + offsets, with the same mask as the loads.",
        )
    if block := c.only_tail(o.constants if o.block else o.blocks):
        return Finding(
            "tail-wrong",
            f"{count} All of them are in the last, ragged block (block size {block}).",
            "The grid or the loop ends before the last block, which is not full.",
            "round up: triton.cdiv(n, BLOCK_SIZE) programs, or range(0, n, BLOCK_SIZE).",
            second="unwritten-output",
        )
    return Finding(
        "unwritten-output",
        f"{count} One of them: {place_in_words(c)}." if left[c.worst] else count,
        _one_block_of_each_row(o)
        or _too_few_programs(o)
        or _without_work(o)
        or "No program wrote them: the grid is too small, a loop ends too early, the store stands outside of its loop, "
        "or its mask is too narrow.",
        o.place_of_a_program
        if _without_work(o)
        else "count the elements: programs × elements per program must cover the output.",
        sure=bool(_one_block_of_each_row(o)),
    )


def _one_block_of_each_row(o: Observation) -> str:
    """The first block of each row was written, or the last one, and nothing else."""
    left, columns = o.left_as_they_were, o.comparison.columns
    if left.ndim != 2 or o.comparison.flat or not o.block or columns <= o.block:
        return ""
    written, place = ~left.all(0), torch.arange(columns) // o.block
    if bool((written == (place == int(place[-1]))).all()):
        return "Only the last block of each row was written: the store is behind the loop over the blocks, not in it."
    if bool((written == (place == 0)).all()):
        return "Only the first block of each row was written: one program takes a row, and has no loop over its blocks."
    return ""


def _too_few_programs(o: Observation) -> str:
    """Whole rows were left out, and there are fewer programs than rows."""
    left, rows = o.left_as_they_were, len(o.comparison.bad_rows)
    if left.ndim != 2 or not 0 < sum(o.programs) < rows or not bool(left.all(1).any()):
        return ""
    if int((~left).any(1).sum()) > sum(o.programs):  # tiles: each program has several rows already
        return ""
    return (
        f"The launch started {many(sum(o.programs), 'program', 'programs')} for {rows} rows, so each program has to "
        "take several rows, in a loop."
    )


def _without_work(o: Observation) -> str:
    """Programs that store nothing, while elements are never written: they work in the wrong place."""
    if not o.evidence.without_work:
        return ""
    idle, programs, first = o.evidence.without_work[:3]
    return (
        f"{idle:,} of {programs:,} programs store nothing, such as program {first}: all of their lanes are masked off. "
        "The place of a program does not follow from its number as it should."
    )


def not_finite(o: Observation) -> Finding | None:
    """NaN or infinity. It is an overflow where exp overflows, or where the results that are finite are right."""
    c = o.wrong
    if c is None or not c.made_not_finite.any():
        return None
    happened = f"{o.worst_in_words} {many(int(c.made_not_finite.sum()), 'element is', 'elements are')} NaN or infinite."
    only_infinite = c.made_infinite and not bool((c.bad & ~c.made_not_finite).any())
    if only_infinite or o.case.about & OVERFLOWING:
        return Finding(
            "overflow",
            happened,
            "The result has room in this dtype, but a number on the way to it is too large: exp(89) is infinite in "
            "float32, and so is 70000 in float16.",
            "compute in float32, multiply once, and subtract the maximum of the whole row before exp.",
        )
    return Finding(
        "nan",
        happened,
        "-inf - (-inf) is NaN, and so are 0 * inf, 0 / 0 and inf / inf. Infinity comes from a division by 0. The "
        "maximum of a lane or a block that saw no element is still -inf.",
        "check what masked-off lanes hold, the initial value of every running maximum and sum, and that the loop gives "
        "each of them its new value.",
    )


def tail(o: Observation) -> Finding | None:
    c = o.wrong
    if c is None or not c.bad.any() or Tag.MASKED in o.case.about:
        return None
    block = c.only_tail(o.blocks)
    if block is None:
        return None
    return Finding(
        "tail-wrong",
        f"{o.worst_in_words} All wrong elements are in the last, ragged block (block size {block}).",
        "The last block is shorter than the others, but its mask or its offsets do not allow for that.",
        "compare the offsets with the length: mask = offsets < n.",
    )


def low_precision(o: Observation) -> Finding | None:
    c = o.wrong
    if c is None or c.relative_error > 0.06:
        return None
    if c.ratio is not None and abs(c.ratio - 1) > (1e-2 if Tag.HALF in o.case.about else 2e-3):
        return None
    if Tag.HALF not in o.case.about and c.relative_error > 0.012:
        return None
    apart = c.ratio is not None and abs(c.ratio - 1) > c.bound.relative
    if apart and c.varies and not c.bound.row_sum:  # rounded elements have no common factor
        return None
    if c.bound.row_sum:
        off, what = f"row sums are off by {c.row_sum_error:.1e}", "a sum or an exponential"
    else:
        off, what = f"errors reach {c.relative_error:.1e}", "an intermediate value"
    return Finding(
        "low-precision",
        f"The result is close, but {off}.",
        f"Most often, {what} was kept in half precision, which has 8 or 11 bits: about three digits.",
        "convert to float32 right after the load, x.to(tl.float32), and accumulate in float32. The store converts "
        "back.",
    )


def constant_factor(o: Observation) -> Finding | None:
    c = o.wrong
    rounding = 1e-6 if c is None or c.bound.row_sum else c.bound.relative
    if c is None or c.ratio is None or abs(c.ratio - 1) <= rounding or not c.varies:
        return None
    return Finding(
        "constant-factor",
        f"Every element is {c.ratio:.6g} times the right one.",
        "The kernel is right except for one constant factor.",
        "look for a factor that should not be there, or for a missing division.",
    )


def factor_of_each_row(o: Observation) -> Finding | None:
    """Each row is a multiple of the right row, where rows have a known sum."""
    c = o.wrong
    if c is None or c.bound.row_sum is None or c.row_ratios is None:
        return None
    low, high = float(c.row_ratios.min()), float(c.row_ratios.max())
    return Finding(
        "not-normalised",
        f"Each row is a multiple of the right row, with factors from {low:.4g} to {high:.4g}.",
        "The rows do not sum to 1. The exponentials are right, and the number that they are divided by is not their "
        "sum.",
        "check the divisor, the initial value of the sum, what each block adds to it, and what masked-off lanes add. "
        "All exponentials of a row subtract the same maximum.",
    )


def wrong_value(o: Observation) -> Finding | None:
    c = o.wrong
    if c is None:
        return None
    rows = c.bad_rows
    pattern = f"{int(c.bad.sum())} of {c.bad.numel()} elements are wrong"
    if len(rows) > 1 and not bool(rows[0]) and int(rows.sum()) == len(rows) - 1:
        pattern += ": all rows but the first"
    elif len(rows) > 1 and not rows.all():
        pattern += f", in {int(rows.sum())} of {len(rows)} rows"
    return Finding(
        "wrong-value",
        f"{o.worst_in_words} {pattern}.",
        "Every element is 0: the kernel stored zeros, or it divided by infinity." if not c.value.any() else "",
        advice="follow one program by hand: its offsets, its mask, what it loads, what it stores.",
    )


# -- the right result of a part of the input: a sum that leaves out a block, say -------------------------

_FIRST = "walk over all blocks, in a loop: for start in range(0, n, BLOCK_SIZE)."
_LAST = "let each step of the loop keep what the steps before it found, such as total += …, and store behind the loop."
_ENDS = "let the loop reach the end: range(0, n, BLOCK_SIZE) with a mask, or tl.cdiv(n, BLOCK_SIZE) steps."
_BEGINS = "begin at 0: range(0, n, BLOCK_SIZE)."


def part_of_the_input(o: Observation) -> Finding | None:
    """A dimension that the output does not have was used in part only. Its right result is found by the reference."""
    c = o.wrong
    if c is None or o.case.gradient is not None or o.exercise.inputs is None or not c.expected.numel():
        return None
    for name, length in _lengths(o).items():
        for part, advice in _parts(length, o.constants):
            computed = _reference(o, name, part)
            if computed is None:
                break  # the output has this dimension
            if agrees(c.value, computed, c.near) and not agrees(computed, c.expected, c.near):
                return Finding(
                    "wrong-value",
                    o.worst_in_words,
                    f"That is the right result for {name} {part.start:,} to {part.stop - 1:,} alone, of {length:,}.",
                    advice,
                    sure=True,
                )
    return None


def _lengths(o: Observation) -> dict[str, int]:
    """By the name of a dimension, its length."""
    found = {}
    for argument, value in zip(o.exercise.inputs.arguments, o.values, strict=False):
        if isinstance(argument, TensorArgument) and isinstance(value, torch.Tensor):
            found |= dict(zip(argument.shape, value.shape, strict=False))
    return found


def _parts(length: int, blocks: tuple[int, ...]) -> Iterator[tuple[slice, str]]:
    for block in (block for block in blocks if block < length):
        last = (length - 1) // block * block
        yield slice(0, block), _FIRST if block < last else f"{_FIRST} Or {_ENDS}"
        yield slice(last, length), _LAST if block < last else f"{_LAST} Or {_BEGINS}"
        yield slice(0, last), _ENDS
        yield slice(block, length), _BEGINS
    if length > 2:
        yield slice(0, length - 1), "compare with the length itself: mask = offsets < n."
        yield slice(1, length), _BEGINS


def _reference(o: Observation, name: str, part: slice) -> torch.Tensor | None:
    """The result for a part of a dimension; None if it has another shape."""
    values = list(o.values)
    for i, (argument, value) in enumerate(zip(o.exercise.inputs.arguments, values, strict=False)):
        if isinstance(argument, TensorArgument) and name in argument.shape and isinstance(value, torch.Tensor):
            values[i] = value[tuple(part if each == name else slice(None) for each in argument.shape)]
    try:
        computed = o.exercise.reference(*values)
    except (RuntimeError, IndexError, ValueError, ZeroDivisionError):  # not computable for this part
        return None
    computed = computed if o.case.pick is None else computed[o.case.pick]
    return computed.double() if computed.shape == o.comparison.expected.shape else None
