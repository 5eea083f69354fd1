"""Finds the misconception that explains an observation.

The rules are tried in their order, and the first rule that recognises an observation gives the finding.
A rule looks at evidence, never at the learner's text: which elements are wrong, which lanes accessed memory outside
of their tensor, what the output agrees with, what the box reported. `overall` makes one diagnosis of all cases: one
vote of each failing case.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch

from workshop import advice

from ..exercises.spec import UNUSUAL, Strided, Tag
from ..tensors import dtype_name
from ..verdict import ErrorMap, Finding, Row, Run, Slug
from . import conduct, patterns
from .observation import Observation, Rule

# About what the answer did. The numbers do not matter.
CONDUCT: tuple[Rule, ...] = (
    conduct.kept_from_earlier,
    conduct.died,
    conduct.troubled,
    conduct.not_attempted,
    conduct.wrong_shape,
    conduct.wrong_dtype,
    conduct.no_kernel,
    conduct.aliased,
    conduct.damaged,
    conduct.not_contiguous,
    conduct.accumulated,
    conduct.wrong_program,
    conduct.raced,
    conduct.undefined,
    conduct.misplaced,
    conduct.wrong_number_of_programs,
    conduct.changing_bits,
    conduct.reads_too_often,
    conduct.writes_too_often,
)
# About patterns in the numbers of a wrong output, if no rule about conduct explains the failure.
PATTERNS: tuple[Rule, ...] = (
    patterns.unwritten,
    patterns.known_mistake,
    patterns.right_for_other_inputs,
    patterns.not_finite,
    patterns.tail,
    patterns.low_precision,
    patterns.constant_factor,
    patterns.factor_of_each_row,
    patterns.unread,
    patterns.wrong_value,
)


def diagnose(o: Observation) -> Finding | None:
    """Why this case failed; None if it passed."""
    for rule in CONDUCT + PATTERNS * (o.wrong is not None):
        if finding := rule(o):
            return replace(finding, happened=finding.happened.strip(), case=o.case.name)
    return None


def overall(observations: list[Observation], findings: list[Finding | None]) -> Finding | None:
    """What explains the answer as a whole: the misconception that most of the failing cases name.

    Returns None if no case failed and the kernels did the work.
    """
    cases = list(zip(observations, findings, strict=True))
    failed = [(o, f) for o, f in cases if f]
    if not failed:
        return _idle(observations)
    if strided := _only_strided(cases):
        return strided
    spoken, finding = _elected(failed)
    if finding.slug.about_conduct or finding.slug == Slug.READS_TOO_OFTEN or spoken.mistake:
        return finding
    where = only_where([o for o, _ in failed], [o for o, f in cases if f is None])
    return replace(finding, means=f"{finding.means} {where}".strip())


def _elected(failed: list[tuple[Observation, Finding]]) -> tuple[Observation, Finding]:
    """The most frequent name among the cases that tell most. Of its cases, the first that is sure speaks, or
    the first with a known line.

    Those with ordinary values tell most, and those with values of all sizes least: there everything becomes NaN. A tie
    is decided by all failing cases, and then by rank. A gradient follows from the forward pass, which comes first.
    """
    failed = [(o, f) for o, f in failed if not f.slug.of_right_numbers] or failed
    failed = [(o, f) for o, f in failed if o.case.gradient is None] or failed
    # in few or equal elements, and in values where much becomes NaN, patterns cannot be told apart
    unusual = UNUSUAL | {Tag.SHORT}
    varied = ((o, f) for o, f in failed if o.comparison is None or o.comparison.varies)
    telling = [(o, f) for o, f in varied if not o.case.about & unusual]
    telling = telling or [(o, f) for o, f in failed if Tag.FAR not in o.case.about] or failed
    if any(o.comparison and _has_a_full_block(o) for o, _ in telling):
        telling = [(o, f) for o, f in telling if _has_a_full_block(o)]
    votes, of_all = (Counter(f.slug for _, f in voters) for voters in (telling, failed))
    elected = min(votes, key=lambda slug: (-votes[slug], -of_all[slug], slug.rank))
    return min(
        ((o, f) for o, f in telling if f.slug == elected), key=lambda each: (not each[1].sure, each[1].line is None)
    )


def _has_a_full_block(o: Observation) -> bool:
    """Whether what a last, ragged block does differs from what all blocks do."""
    return o.comparison is None or o.comparison.columns >= o.block


def _idle(passed: list[Observation]) -> Finding | None:
    """Right results that are the same without the kernels, in every case that has elements."""
    full = [o for o in passed if o.comparison and o.comparison.expected.numel()]
    if not full or not all(o.evidence.idle for o in full):
        return None
    return Finding(
        "no-triton-kernel",
        "The kernels change nothing: without them the result is the same.",
        "torch put the result together by copies. A Triton kernel must compute the numbers of the output.",
        "allocate the output with torch.empty, and store to it in the kernel.",
        case=full[0].case.name,
    )


def _only_strided(cases: list[tuple[Observation, Finding | None]]) -> Finding | None:
    """All contiguous inputs pass, and all row-strided inputs fail."""
    strided = [f for o, f in cases if Tag.STRIDED in o.case.about and Tag.WIDE not in o.case.about]
    contiguous = [f for o, f in cases if Tag.STRIDED not in o.case.about]
    if not strided or not all(strided) or any(contiguous):
        return None
    first = strided[0]
    if first.slug == Slug.NOT_CONTIGUOUS:
        return replace(first, slug=Slug.STRIDE_IGNORED, second=Slug.NOT_CONTIGUOUS)
    if first.slug.about_conduct or first.slug.of_right_numbers:
        return None
    what = f"rows of {first.tensor}" if first.tensor else "rows of the input or of the output"
    return replace(
        first,
        slug=Slug.STRIDE_IGNORED,
        means=f"The results are right for contiguous inputs and wrong for row-strided inputs. Either {what} begin in "
        "the wrong place, or a mask is true behind the end of a row.",
        advice="begin row r at r * stride, with the stride of that tensor: x.stride(0) and output.stride(0) differ. "
        "Compare each column with the number of columns.",
        second=None,
    )


def with_wrong_steps(finding: Finding, observations: list[Observation]) -> Finding:
    """The finding with the line whose steps are wrong in its case, if it is not sure of another cause."""
    o = next((o for o in observations if o.case.name == finding.case), None)
    if finding.sure or o is None or o.wrong is None or not o.evidence.steps:
        return finding
    found = o.evidence.steps[0]
    means, attempt = advice.about_steps(found)
    return replace(finding, means=means, advice=attempt, line=found.line or None, code=found.code, second=None)


MOST_SAID = 2
NOTHING = "there are no elements"


def only_where(failed: list[Observation], passed: list[Observation]) -> str:
    """A sentence about what all failing cases have and no passing case has; "" if there is nothing."""
    of = {id(o): list(_properties(o)) for o in (*failed, *passed)}
    passed = [o for o in passed if NOTHING not in of[id(o)]]
    failed = [o for o in failed if NOTHING not in of[id(o)]] or failed
    return in_common([of[id(o)] for o in failed], [of[id(o)] for o in passed], _beyond(failed, passed))


def in_common(failing: list[list[str]], passing: list[list[str]], otherwise: Iterable[str] = ()) -> str:
    """The same of properties: those of each case, the most telling first. otherwise: what to say if none is of failing
    cases alone."""
    if not passing:
        return ""
    common = [what for what in failing[0] if all(what in each for each in failing)]
    elsewhere = {what for each in passing for what in each}
    if said := [what for what in common if what not in elsewhere] or list(otherwise):
        return f"The failing cases are those in which {' and '.join(said[:MOST_SAID])}."
    return ""


def _beyond(failed: list[Observation], passed: list[Observation]) -> Iterator[str]:
    """Where the numbers of several failing cases are larger, or smaller, than those of all others."""
    (low, high), (lows, highs) = (zip(*map(_range, each)) for each in (failed, passed))
    lower, higher = max(low) < min(lows), min(high) > max(highs)
    if len(failed) < 2 or lower and higher:  # among more numbers, some are smaller and some are larger
        return
    if len(failed) > len(passed):  # then the few others have the smallest or the largest numbers by chance
        return
    if lower:
        yield f"a number is smaller than {min(lows):,.4g}"
    if higher:
        yield f"a number is larger than {max(highs):,.4g}"


def _range(o: Observation) -> tuple[float, float]:
    """The smallest and the largest finite number of a case; 0 if it has none."""
    numbers = torch.cat([torch.zeros(1).double(), *(a.values.double().flatten() for a in _floats(o))])
    finite = numbers[numbers.isfinite()]
    return float(finite.min()), float(finite.max())


def _floats(o: Observation) -> list[Strided]:
    return [a for a in o.arguments if isinstance(a, Strided) and a.values.is_floating_point() and a.values.numel()]


def _properties(o: Observation) -> Iterator[str]:
    """What is true of a case, the most telling first."""
    tensors = [a for a in o.arguments if isinstance(a, Strided)]
    if o.case.gradient is not None:
        yield "the gradient is asked for"
    if o.case.pick is not None:
        yield f"{o.exercise.inputs.outputs[o.case.pick]} is the output that is judged"
    axes = [length for length in tensors[0].values.shape if length > 1] if tensors else []  # len(x): 3 of 3 × 1, too
    if len({a.values.ndim for a in tensors}) == 1 and o.comparison and o.comparison.flat and len(axes) > 1:
        yield "the input has more than one axis that is longer than 1"
    rows = [a for a in tensors if a.values.ndim > 1 and math.prod(a.values.shape[:-1]) > 1]
    if any(a.stride[-2] > a.values.shape[-1] for a in rows):
        yield "the row stride is larger than the row length"
    if any(a.stride[-2] == 0 for a in rows):
        yield "the row stride is 0"
    yield from (what for what, test in _OF_NUMBERS.items() if any(bool(test(a.values)) for a in _floats(o)))
    yield from _of_sizes(o, tensors)
    for name in dict.fromkeys(dtype_name(a.values.dtype) for a in tensors if a.values.is_floating_point()):
        yield f"the input is {name}"
        if name in ("float16", "bfloat16"):
            yield "the numbers have 16 bits"


_OF_NUMBERS = {
    "NaN is among the numbers": lambda x: x.isnan().any(),
    "-inf is among the numbers": lambda x: (x == -torch.inf).any(),
    "inf is among the numbers": lambda x: (x == torch.inf).any(),
    "all numbers are negative": lambda x: (x < 0).all(),
}


def _of_sizes(o: Observation, tensors: list[Strided]) -> Iterator[str]:
    shapes = [tuple(a.values.shape) for a in tensors] + ([tuple(o.comparison.expected.shape)] if o.comparison else [])
    shape = max(shapes, key=math.prod, default=())
    if not math.prod(shape):
        yield NOTHING
        return
    if math.prod(shape) == 1:
        yield "there is one element"
    matrix = len(shape) == 2 and not (o.comparison and o.comparison.flat)
    columns = shape[-1] if matrix else math.prod(shape)
    if matrix and shape[0] > 1:
        yield "there are several rows"
    if o.block and columns > o.block:
        yield "a row is longer than one block" if matrix else "there are several blocks"
    if o.block:
        yield f"the last block is {'not ' * (columns % o.block > 0)}full"


# -- which elements of a case are wrong, as a map that a panel can draw --------------------------------------
# The map shows rows of an output as runs of one state. Where a block size is known, it also shows the lanes of the last
# block that have no element. A fault is shown as the lanes of the program that reached outside.

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
    if o.result.shape != tuple(c.expected.shape) or conduct.wrong_dtype(o) or conduct.not_contiguous(o):
        return None  # its bytes are not those of the elements
    states = torch.zeros(c.bad.shape, dtype=torch.int8)
    states[c.bad] = WRONG
    states[c.bad & ~torch.isfinite(c.value)] = NOT_FINITE
    states[c.bad & c.unwritten] = UNWRITTEN
    states = states.reshape(-1, c.columns)
    wrong_rows = c.bad_rows.nonzero().flatten().tolist()
    right_rows = sorted(set(range(len(states))) - set(wrong_rows))
    shown = sorted([*wrong_rows[: MOST_ROWS - 1], *right_rows[:1]])  # one right row, to compare with
    rows = tuple(Row(f"row {i}" if c.bad.ndim == 2 and not c.flat else "output", _runs(states[i])) for i in shown)
    return ErrorMap(o.case.name, c.columns, rows, o.block or 0, _map_in_words(o, states, wrong_rows), len(states))


def _runs(states: torch.Tensor) -> tuple[Run, ...]:
    """Runs of one state. Elements that alternate are put together."""
    values, lengths = torch.unique_consecutive(states, return_counts=True)
    if len(values) > MOST_RUNS:
        ends = torch.linspace(0, len(states), MOST_RUNS + 1).round().long().tolist()
        parts = [(int(states[a:b].max()), b - a) for a, b in zip(ends, ends[1:]) if b > a]
    else:
        parts = list(zip(values.tolist(), lengths.tolist(), strict=True))
    return tuple(Run(_NAMES[state], length) for state, length in parts)


def _map_in_words(o: Observation, states: torch.Tensor, wrong_rows: list[int]) -> str:
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
    program = advice.program_in_words(fault.program)
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
    words = f"{fault.lanes} lanes of program {advice.program_in_words(fault.program)} {does} outside of "
    words += f"{fault.argument}, from row {row}, column {column} on: a row has {columns} columns, and the next one "
    words += f"begins {stride} later."
    return ErrorMap(o.case.name, stride, tuple(shown), 0, words, rows)
