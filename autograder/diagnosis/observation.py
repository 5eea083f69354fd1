"""One case as the judge observed it: whether its output is right, and where it is wrong, in words.

All is computed in float64 on the CPU.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch

from ..box.wire import Evidence, Result, Trouble
from ..exercises.spec import Bound, Case, Exercise, Mistake, Strided
from ..tensors import close, is_poison
from ..verdict import Finding

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


LONG = 64  # elements of a row whose sum is compared
SPREAD = 1e-4  # by which the factors of elements differ that have one factor


@dataclass(frozen=True)
class Comparison:
    """An output and its reference. `got` has the learner's dtype, `expected` is float64.

    flat: its elements follow each other, whatever its shape: rows mean nothing.
    """

    got: torch.Tensor
    expected: torch.Tensor
    bound: Bound
    flat: bool = False

    @cached_property
    def value(self) -> torch.Tensor:
        return self.got.double()

    @cached_property
    def unwritten(self) -> torch.Tensor:
        """Elements that still hold the poison of fresh memory."""
        return is_poison(self.got) if self.got.numel() else torch.zeros(self.got.shape, dtype=torch.bool)

    @cached_property
    def bad(self) -> torch.Tensor:
        wrong = ~close(self.value, self.expected, self.bound.relative, self.bound.absolute)
        return wrong | self.unwritten  # unwritten memory may hold any value, even where NaN is right

    @cached_property
    def made_not_finite(self) -> torch.Tensor:
        """Elements that are NaN where the reference is a number, or infinite where it is finite."""
        made_infinite = torch.isinf(self.value) & torch.isfinite(self.expected)
        return self.value.isnan() & ~self.expected.isnan() | made_infinite

    @cached_property
    def row_sum_error(self) -> float:
        """The largest relative error of a row's sum; 0 where the output is no matrix of long rows, or no sum is finite.

        A right output is rounded to its dtype, and in few elements the errors do not average out. In rows of equal
        numbers they change the sum: so it is compared with the sum of the reference, rounded in the same way.
        """
        if self.expected.ndim != 2 or not self.expected.numel() or self.expected.shape[1] < LONG:
            return 0.0
        sums = self.expected.to(self.got.dtype).double().sum(1)
        error = (self.value.sum(1) - sums).abs() / sums.abs()
        # equal numbers are all rounded the same way, so their errors add up: nothing averages out
        averaged = torch.isfinite(error) & (self.expected.amax(1) > self.expected.amin(1))
        return float(error[averaged].max()) if averaged.any() else 0.0

    @cached_property
    def right(self) -> bool:
        if self.bad.any():
            return False
        return self.bound.row_sum is None or self.row_sum_error <= self.bound.row_sum

    @property
    def near(self) -> Bound:
        """An output as near as this to what a known mistake computes is attributed to that mistake."""
        rounding = self.bound.absolute if isinstance(self.bound.absolute, torch.Tensor) else 0.0
        return Bound(max(6 * self.bound.relative, 1e-5), 1e-7 + rounding)

    @cached_property
    def worst(self) -> tuple[int, ...]:
        """The wrong element whose expected value is largest; the first of equal ones."""
        weight = torch.where(self.bad, self.expected.abs().nan_to_num(0.0) + 1.0, 0.0)
        # torch's own unravel_index imports sympy: half a second of the first wrong answer
        return tuple(int(i) for i in np.unravel_index(int(weight.argmax()), tuple(weight.shape)))

    @cached_property
    def bad_rows(self) -> torch.Tensor:
        """Which rows hold a wrong element; a 1-D or flat output is one row."""
        return self.bad.reshape(self._rows, -1).any(1)

    @cached_property
    def bad_columns(self) -> torch.Tensor:
        return self.bad.reshape(self._rows, -1).any(0)

    @property
    def _rows(self) -> int:
        return 1 if self.flat or self.bad.ndim != 2 else self.bad.shape[0]

    @cached_property
    def columns(self) -> int:
        return self.bad.numel() if self.flat else (self.bad.shape or (1,))[-1]

    def only_tail(self, blocks: tuple[int, ...]) -> int | None:
        """The block size for which only the ragged last block is wrong; None if there is none."""
        first = int(self.bad_columns.nonzero()[0])
        for block in sorted(blocks, reverse=True):  # an element behind 64 is also one behind 16 times 4
            start = self.columns // block * block
            if 0 < start < self.columns and first >= start and self.bad_columns[start:].double().mean() >= 0.75:
                return block
        return None

    @cached_property
    def varies(self) -> bool:
        """Whether the reference has different values. If all are equal, every constant output is a multiple of it."""
        finite = self.expected[torch.isfinite(self.expected)]
        return finite.numel() > 1 and float(finite.max() - finite.min()) > 1e-6 * float(finite.abs().max())

    @cached_property
    def weighty(self) -> torch.Tensor:
        """Elements of which a factor can be told: the absolute bound hides less of it than the relative bound."""
        size = self.expected.abs()
        return (size > 1e-12) & (size * max(self.bound.relative, SPREAD) > self.bound.absolute)

    @cached_property
    def ratio(self) -> float | None:
        """The factor between output and reference, if it is the same for all elements, and none is wrong otherwise."""
        both = torch.isfinite(self.value) & torch.isfinite(self.expected)
        if not bool((both | ~torch.isfinite(self.expected) & ~self.bad).all()):
            return None
        usable = both & self.weighty
        if not usable.any():
            return None
        ratios = self.value[usable] / self.expected[usable]
        middle = float(ratios.median())
        spread = float((ratios - middle).abs().max())
        return middle if middle and spread <= max(2 * self.bound.relative, SPREAD) * abs(middle) else None

    @cached_property
    def row_ratios(self) -> torch.Tensor | None:
        """One factor for each row, if each row is a multiple of the right row."""
        if self.expected.ndim != 2 or self.expected.shape[1] < 2 or not torch.isfinite(self.value).all():
            return None
        ratios = torch.where(self.weighty, self.value / self.expected, torch.nan)
        middle = ratios.nanmedian(1, keepdim=True).values
        spread = (ratios - middle).abs().nan_to_num(0.0)
        same = bool((spread <= max(4 * self.bound.relative, 1e-3) * middle.abs()).all())
        return middle.squeeze(1) if same and bool((middle != 0).all()) else None

    @cached_property
    def relative_error(self) -> float:
        """The largest relative error over elements that matter; inf where something is wrong and not finite."""
        both = torch.isfinite(self.value) & torch.isfinite(self.expected)
        if bool((self.bad & ~both).any()):
            return float("inf")
        scale = torch.maximum(self.expected.abs(), torch.as_tensor(self.bound.size, dtype=torch.float64))
        error = ((self.value - self.expected).abs() / scale).nan_to_num(0.0)
        return float(error.max()) if error.numel() else 0.0

    def is_told_by(self, computed: torch.Tensor) -> bool:
        """Whether what an explanation computes is more than 0 where the output is wrong. Many things give 0."""
        return bool((self.bad & torch.isfinite(computed) & (computed.abs() > self.near.absolute)).any())


def agrees(got: torch.Tensor, expected: torch.Tensor, near: Bound) -> bool:
    """Whether an output is what a known mistake computes, apart from the rounding of intermediate steps.

    Most mistakes are ruled out by a few elements. Only where these agree are all compared.
    """
    if got.shape != expected.shape:
        return False
    step = max(1, got.numel() // 256)
    whole = got, expected, torch.as_tensor(near.absolute).expand(got.shape)
    few = (tensor.reshape(-1)[::step] for tensor in whole)
    return all(bool(close(g, e, near.relative, most).all()) for g, e, most in (few, whole))
