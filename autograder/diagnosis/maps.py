"""Which elements of one case are wrong, as a map that a panel can draw.

The map shows rows of an output as runs of one state. Where a block size is known, it also shows the lanes of the last
block that have no element. A fault is shown as the lanes of the program that reached outside.
"""

from __future__ import annotations

import math

import torch

from workshop.advice import program_in_words

from ..verdict import ErrorMap, Row, Run
from .conduct import not_contiguous, wrong_dtype
from .observation import Observation

MOST_ROWS = 6
MOST_RUNS = 60  # in one row; a row with more is drawn in so many parts, each with its worst state
OK, WRONG, NOT_FINITE, UNWRITTEN = range(4)  # worse states have larger numbers
_NAMES = ("right", "wrong", "nan", "unwritten")


def error_map(o: Observation) -> ErrorMap | None:
    """The map of a wrong case; None where there is nothing to draw."""
    if o.trouble is not None and o.trouble.fault is not None:
        return _of_fault(o.trouble.fault, o)
    c = o.comparison
    if c is None or not c.bad.any() or not (c.flat or c.bad.ndim in (1, 2)) or o.result is None:
        return None
    if o.result.shape != tuple(c.expected.shape) or wrong_dtype(o) or not_contiguous(o):
        return None  # its bytes are not those of the elements
    states = torch.zeros(c.bad.shape, dtype=torch.int8)
    states[c.bad] = WRONG
    states[c.bad & ~torch.isfinite(c.value)] = NOT_FINITE
    states[c.bad & c.unwritten] = UNWRITTEN
    states = states.reshape(-1, c.columns)
    wrong_rows = c.bad_rows.nonzero().flatten().tolist()
    shown = _shown_rows(wrong_rows, len(states))
    rows = tuple(Row(f"row {i}" if c.bad.ndim == 2 and not c.flat else "output", _runs(states[i])) for i in shown)
    return ErrorMap(o.case.name, c.columns, rows, o.block or 0, _in_words(o, states, wrong_rows), len(states))


def _shown_rows(wrong: list[int], count: int) -> list[int]:
    """The first wrong rows, and one right row before them to compare with, if there is one."""
    right = sorted(set(range(count)) - set(wrong))
    return sorted([*wrong[: MOST_ROWS - 1], *right[:1]])


def _runs(states: torch.Tensor) -> tuple[Run, ...]:
    """Runs of one state. Elements that alternate are put together."""
    values, lengths = torch.unique_consecutive(states, return_counts=True)
    if len(values) > MOST_RUNS:
        ends = torch.linspace(0, len(states), MOST_RUNS + 1).round().long().tolist()
        parts = [(int(states[a:b].max()), b - a) for a, b in zip(ends, ends[1:]) if b > a]
    else:
        parts = list(zip(values.tolist(), lengths.tolist(), strict=True))
    return tuple(Run(_NAMES[state], length) for state, length in parts)


def _in_words(o: Observation, states: torch.Tensor, wrong_rows: list[int]) -> str:
    parts = [
        f"{count} element{'s' * (count != 1)} {words}"
        for state, words in ((WRONG, "wrong"), (NOT_FINITE, "NaN or infinite"), (UNWRITTEN, "never written"))
        if (count := int((states == state).sum()))
    ]
    columns = (states > 0).any(0).nonzero().flatten()
    first, last = int(columns[0]), int(columns[-1])
    what = "columns" if len(states) > 1 else "elements"
    where = f"{what} {first} to {last}" if first != last else f"{what[:-1]} {first}"
    rows = f" in {len(wrong_rows)} of {len(states)} rows" if len(states) > 1 else ""
    return f"{' and '.join(parts)} (of {states.numel()}), {where}{rows}."


def _of_fault(fault, o: Observation) -> ErrorMap | None:
    """The lanes of the program that reached past the end of a tensor, up to the end of its block."""
    if fault.place == "gap":
        return _of_gap(fault, fault.index[0], fault.index[-1], o)
    first, lanes = fault.number, fault.number + fault.lanes
    # Where no constant says the block's size, it ends with these lanes if that makes a usual size.
    block = o.block or (lanes if lanes >= 16 and lanes & (lanes - 1) == 0 else 0)
    known = lanes <= block and (first or len(fault.shape) == 1)
    if fault.place != "past the end" or not known or not math.prod(fault.shape):
        return None
    program = program_in_words(fault.program)
    row = Row(f"program {program}", (Run("right", first), Run("outside", fault.lanes))[not first :])
    does = "read" if fault.kind == "load" else "wrote"
    words = f"{fault.lanes} of {block} lanes of program {program} {does} outside of {fault.argument}."
    return ErrorMap(o.case.name, lanes, (row,), block, words, 1, lanes=True)


def _of_gap(fault, row: int, column: int, o: Observation) -> ErrorMap | None:
    """Rows of a strided tensor as they lie in memory, with the lanes that touched the gap between two of them."""
    if len(fault.shape) != 2:  # a view of a strided matrix as one row of elements
        return None
    (rows, columns), stride = fault.shape, fault.stride[0]
    if not 0 < columns <= column < stride:
        return None
    touched = min(fault.lanes, stride - column)
    shown = [Row(f"row {i}", (Run("right", columns), Run("gap", stride - columns))) for i in range(min(rows, 3))]
    outside = (Run("gap", column - columns), Run("outside", touched), Run("gap", stride - column - touched))
    hit = Row(f"row {row}", (Run("right", columns), *(run for run in outside if run.length)))
    shown = [hit if each.label == hit.label else each for each in shown]
    if hit not in shown:
        shown = [*shown[:2], hit]
    does = "read" if fault.kind == "load" else "wrote"
    words = f"{fault.lanes} lanes of program {program_in_words(fault.program)} {does} outside of {fault.argument}, "
    words += f"from row {row}, column {column} on: a row has {columns} columns, and the next one begins {stride} later."
    return ErrorMap(o.case.name, stride, tuple(shown), 0, words, rows)
