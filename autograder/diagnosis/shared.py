"""What the failing cases of an answer have in common, and no other case has."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from ..exercises.cases import Strided
from ..tensors import dtype_name
from .observation import Observation

MOST_SAID = 2
NOTHING = "there are no elements"


def only_where(failed: list[Observation], passed: list[Observation]) -> str:
    """A sentence about what all failing cases have and no passing case has; "" if there is nothing."""
    passed = [o for o in passed if NOTHING not in _properties(o)]
    failed = [o for o in failed if NOTHING not in _properties(o)] or failed
    if not passed:
        return ""
    first, *others = (list(_properties(o)) for o in failed)
    elsewhere = {what for o in passed for what in _properties(o)}
    said = [what for what in first if what not in elsewhere and all(what in each for each in others)]
    said = said or list(_beyond([_range(o) for o in failed], [_range(o) for o in passed]))
    return f"It fails only where {' and '.join(said[:MOST_SAID])}." if said else ""


def _beyond(failed: list[tuple[float, float]], passed: list[tuple[float, float]]) -> Iterator[str]:
    """Where the numbers of several failing cases are larger, or smaller, than those of all others."""
    (low, high), (lows, highs) = zip(*failed), zip(*passed)
    lower, higher = max(low) < min(lows), min(high) > max(highs)
    if len(failed) < 2 or lower and higher:  # among more numbers, some are smaller and some are larger
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
    if len({a.values.ndim for a in tensors}) == 1 and o.comparison and o.comparison.flat and tensors[0].values.ndim > 1:
        yield "the input has more than one axis"
    yield from _of_layouts(tensors)
    yield from _of_numbers([a.values for a in _floats(o)])
    yield from _of_sizes(o, tensors)
    for name in dict.fromkeys(dtype_name(a.values.dtype) for a in tensors if a.values.is_floating_point()):
        yield f"the input is {name}"
        if name in ("float16", "bfloat16"):
            yield "the numbers have 16 bits"


def _of_layouts(tensors: list[Strided]) -> Iterator[str]:
    rows = [a for a in tensors if a.values.ndim > 1 and math.prod(a.values.shape[:-1]) > 1]
    if any(a.stride[-2] > a.values.shape[-1] for a in rows):
        yield "the row stride is larger than the row length"
    if any(a.stride[-2] == 0 for a in rows):
        yield "the row stride is 0"


def _of_numbers(numbers: list[torch.Tensor]) -> Iterator[str]:
    found = {
        "NaN is among the numbers": lambda x: x.isnan().any(),
        "-inf is among the numbers": lambda x: (x == -torch.inf).any(),
        "inf is among the numbers": lambda x: (x == torch.inf).any(),
        "all numbers are negative": lambda x: (x < 0).all(),
    }
    yield from (what for what, test in found.items() if any(map(test, numbers)))


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
