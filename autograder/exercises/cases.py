"""What a case is: one call of the learner's function, its arguments, and what it tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import torch


class Tag(StrEnum):
    """What a case tests."""

    RAGGED = "ragged"  # the last block is not full
    SHORT = "short"  # few elements or columns: different patterns look alike
    EMPTY = "empty"  # no elements
    STRIDED = "strided"  # the row stride is not the row length
    MANY = "many"  # many rows
    WIDE = "wide"  # a row is too long for one block
    HALF = "half"  # float16 or bfloat16
    HUGE = "huge"  # exp overflows
    ASCENDING = "ascending"  # each block has a larger maximum than all before it
    DESCENDING = "descending"  # the largest element comes first
    NEGATIVE = "negative"  # exp of every element is 0
    FAR = "far"  # finite values from one end of the dtype to the other
    MASKED = "masked"  # rows that begin with blocks of -inf
    ALL_MASKED = "all-masked"  # a row of nothing but -inf
    AGAIN = "again"  # a call like an earlier one: the answer may keep something from it
    EXTREME = "extreme"  # a scalar at the end of its range
    SPECIAL = "special"  # inf, NaN, -0 and very small numbers among others
    REPEAT = "repeat"  # JAX: called several times, plainly and under jit
    SEEDS = "seeds"  # JAX: called with many seeds
    RATE = "rate"  # JAX: large enough for statistics
    OPTIONAL = "optional"  # JAX: an answer may refuse the case, but it must not return a wrong result


# With such values exp overflows, unless the maximum of the whole row is subtracted.
OVERFLOWING = {Tag.HUGE, Tag.DESCENDING, Tag.ASCENDING}
# With such values a kernel that is nearly right gives NaN.
UNUSUAL = OVERFLOWING | {Tag.MASKED, Tag.ALL_MASKED, Tag.NEGATIVE, Tag.FAR, Tag.EXTREME, Tag.SPECIAL}


FAR = 1e5  # numbers beyond it are far from each other in the cases of a softmax


@dataclass(frozen=True)
class Strided:
    """A tensor argument: `values` laid out in memory with `row_stride` elements from row to row, or with any `strides`.

    The gaps between rows are not part of the tensor: an access to them is out of bounds. shift: so many elements behind
    a multiple of 16 bytes the tensor begins.
    """

    values: torch.Tensor
    row_stride: int | None = None
    strides: tuple[int, ...] | None = None
    shift: int = 0

    @property
    def stride(self) -> tuple[int, ...]:
        if self.strides:
            return self.strides
        contiguous = torch.empty(self.values.shape, device="meta").stride()
        if self.row_stride is None:
            return tuple(contiguous)
        return (self.row_stride, *contiguous[1:])


@dataclass(frozen=True)
class Large:
    """A tensor argument that is too large to hold: see judge/large.py. row_stride: as in Strided.

    axis: a row of the output follows from one place along this axis; None: from all of it. span: see tensors.seeded.
    whole: whether a right answer reads all of its elements.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    row_stride: int | None = None
    axis: int | None = 0
    span: tuple[float, float] | None = (-4, 4)
    whole: bool = True

    @property
    def stride(self) -> tuple[int, ...]:
        return Strided(torch.empty(self.shape, device="meta"), self.row_stride).stride


@dataclass(frozen=True)
class Varying:
    """An integer that differs between the calls of one case, such as a seed. Under jax.jit it is traced."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class Cotangent:
    """Not an argument: the gradient of the output, from which that of an argument follows. Of the output's shape.

    strides: as in Strided.
    """

    values: torch.Tensor
    strides: tuple[int, ...] | None = None


Argument = Strided | Large | Varying | Cotangent | int | float


@dataclass(frozen=True)
class Case:
    """One call of the learner's function. For a JAX function: the calls that `Exercise.calls` lists.

    `make` draws the arguments from a seeded generator, so that every judgement has new numbers. `about` may be given as
    text, with blanks between the tags. An unknown tag raises ValueError.

    pick: the number of the output that is judged, if the function returns several. gradient: the number of the argument
    whose gradient is judged in place of the output; then `make` ends with a Cotangent.
    """

    name: str
    make: Callable[[torch.Generator], tuple[Argument, ...]]
    about: frozenset[Tag] = frozenset()
    pick: int | None = None
    gradient: int | None = None

    def __post_init__(self):
        about = self.about.split() if isinstance(self.about, str) else self.about
        object.__setattr__(self, "about", frozenset(map(Tag, about)))


def integer(generator: torch.Generator, low: int, high: int) -> int:
    """A random integer from `low` to `high`, both included."""
    return int(torch.randint(low, high + 1, (), generator=generator))


def choice(generator: torch.Generator, values: Sequence):
    return values[integer(generator, 0, len(values) - 1)]


def rows_one_apart(x: torch.Tensor) -> torch.Tensor:
    """What a kernel reads from a contiguous matrix if row r begins at element r: the stride of a row is taken as 1."""
    return x.flatten().unfold(0, x.shape[1], 1)[: x.shape[0]]


def as_if_by_rows(x: torch.Tensor) -> torch.Tensor:
    """What a kernel reads from a transposed matrix if it takes it for a contiguous one of the same shape."""
    return x.t().reshape(x.shape)
