"""One case as the judge observed it, and functions that describe places in words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch

from ..box.wire.answers import Evidence, Result, Trouble
from ..exercises.cases import Case, Strided
from ..exercises.spec import Exercise, Mistake
from ..verdict import Finding
from .comparison import Comparison, agrees

GPU_FAULT = re.compile(
    r"illegal memory access|misaligned address|unspecified launch failure|illegal instruction|"
    r"memory access fault|HSA_STATUS_ERROR|AcceleratorError|(CUDA|HIP) error",
    re.I,
)


@dataclass(frozen=True, eq=False)
class Observation:
    """One case: what the answer was given, and what it returned."""

    exercise: Exercise
    case: Case
    arguments: tuple
    backend: str
    trouble: Trouble | None = None
    exceeded: str | None = None
    death: int = 0
    stage: str = "replay"
    result: Result | None = None
    evidence: Evidence = Evidence()
    comparison: Comparison | None = None
    expected: tuple[int, ...] = ()  # the shape of a right output
    constants: tuple[int, ...] = ()
    block: int = 0  # elements of one program's block, where a constant's name says so
    programs: tuple[int, ...] = ()  # of each launch
    sides: int = 0  # how many lengths of a block the last launch has: two for tiles

    @property
    def values(self) -> tuple:
        return tuple(a.values if isinstance(a, Strided) else a for a in self.arguments)

    @property
    def wrong(self) -> Comparison | None:
        """The comparison, if it found the output wrong."""
        return None if self.comparison is None or self.comparison.right else self.comparison

    @property
    def blocks(self) -> tuple[int, ...]:
        """Block sizes that a pattern may have: first the constants of the launches, then common sizes."""
        usual = (256, 128, 512, 1024, 64, 2048, 4096, 32, 16)
        return tuple(dict.fromkeys([c for c in self.constants if 2 <= c <= 1 << 20] + list(usual)))

    @cached_property
    def left_as_they_were(self) -> torch.Tensor:
        """Wrong elements that hold what was there before the launch: poison, or what the host function filled in."""
        c = self.comparison
        return c.bad & (c.unwritten | (c.value == self.exercise.fill))

    @property
    def place_of_a_program(self) -> str:
        """What to write so that each program works on its own part."""
        c = self.comparison
        if c.flat or c.expected.ndim < 2:
            if self.block:
                return "begin each program at its own block: tl.program_id(0) * BLOCK_SIZE."
            return "ask Triton which program this is: tl.program_id(axis=0)."
        if self.sides > 1 and sum(self.programs) != len(c.bad_rows):
            return (
                "for tiles, begin the rows at pid // tiles_across * ROWS and the columns at pid % tiles_across * "
                "COLUMNS, where tiles_across = tl.cdiv(number of columns, COLUMNS)."
            )
        return (
            "begin each program at its own row: tl.program_id(0) * row_stride. A loop over rows begins at "
            "tl.program_id(0) and steps by tl.num_programs(0)."
        )

    @property
    def worst_in_words(self) -> str:
        """The worst element: its place, its value and the expected value."""
        c = self.comparison
        if not c.bad.any():
            return f"Row sums are off by {c.row_sum_error:.1e}."
        i = c.worst
        got, expected = float(c.value[i]), float(c.expected[i])
        return f"{place_in_words(c).capitalize()} is {got:.6g}, expected {expected:.6g}."

    @cached_property
    def mistake(self) -> Mistake | None:
        """The first known mistake that computes this output."""
        c = self.wrong
        if c is None or not c.expected.numel():
            return None
        return next((mistake for mistake in self.exercise.mistakes if _matches(mistake, self)), None)


MOST_BLOCKS = 600  # of a row
Rule = Callable[[Observation], Finding | None]


def _matches(mistake: Mistake, o: Observation) -> bool:
    """Whether the output is what this mistake computes, for one of the likely block sizes."""
    c = o.comparison
    for computed in _computed(mistake, o):
        if not agrees(c.value, computed, c.near) or agrees(computed, c.expected, c.near):
            continue
        if mistake.known_by_constant or c.is_told_by(computed):
            return True
    return False


def _computed(mistake: Mistake, o: Observation) -> Iterator[torch.Tensor]:
    """What the mistake computes, for each of the likely block sizes."""
    blockwise = _takes_a_block(mistake.compute)
    for block in o.constants or o.blocks if blockwise else (None,):
        if blockwise and o.comparison.columns > MOST_BLOCKS * block:  # not a block, but another constant
            continue
        try:
            computed = mistake.compute(*o.values, block=block) if blockwise else mistake.compute(*o.values)
        except (RuntimeError, IndexError, ValueError, ZeroDivisionError):  # not computable for this input
            continue
        yield (computed if o.case.pick is None else computed[o.case.pick]).double()


@lru_cache(1024)
def _takes_a_block(compute: Callable) -> bool:
    return "block" in inspect.signature(compute).parameters


def place_in_words(c: Comparison) -> str:
    i = c.worst
    if not i:
        return "the output"
    return f"row {i[0]}, column {i[1]}" if len(i) == 2 else f"element {', '.join(map(str, i))}"


def shape_in_words(shape) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
