"""The right result of a part of the input: a sum that leaves out a block, say, or that keeps only the last one."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..exercises.design import TensorArgument
from ..verdict import Finding
from .comparison import agrees
from .observation import Observation

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
