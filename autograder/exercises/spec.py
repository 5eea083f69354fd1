"""What an exercise is: data only. The judge gives it meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from ..verdict import Finding


@dataclass(frozen=True)
class Strided:
    """A tensor argument: `values` laid out in memory with `row_stride` elements from row to row.

    The gaps between rows belong to nobody: a kernel that touches them is out of bounds.
    """

    values: torch.Tensor
    row_stride: int | None = None

    @property
    def stride(self) -> tuple[int, ...]:
        contiguous = torch.empty(self.values.shape, device="meta").stride()
        if self.row_stride is None:
            return tuple(contiguous)
        return (self.row_stride, *contiguous[1:])


Argument = Strided | int | float


@dataclass(frozen=True)
class Case:
    """One call of the learner's function.

    `make` draws the arguments from a seeded generator, so that every judgement has fresh numbers.
    `about` names what the case is there to show ("strided", "ragged", "huge", …); diagnoses read it.
    """

    name: str
    make: Callable[[torch.Generator], tuple[Argument, ...]]
    about: frozenset[str] = frozenset()
    gpu_only: bool = False


@dataclass(frozen=True)
class Bound:
    """How far a right answer may be from the float64 reference.

    Elementwise |got - expected| <= relative * |expected| + absolute; where `row_sum` is given, each row's
    sum must agree to that relative error too, which shows an accumulator that was too narrow even where
    every single element hides it behind the rounding of the output.
    """

    relative: float
    absolute: float = 0.0
    row_sum: float | None = None

    def of_exponents(self, largest: float) -> Bound:
        """The bound where float32 exponents as large as this were rounded, as in exp(x - log(sum))."""
        if self.row_sum is None:
            return self
        more = 4 * 2.0**-24 * largest
        return Bound(self.relative + more, self.absolute, self.row_sum + more)


@dataclass(frozen=True)
class Mistake:
    """A known misconception and what it computes: when the output agrees with it, the verdict says so.

    Many mistakes end in NaN; an output of NaN alone tells of this one only if `known_by_nan`.
    """

    slug: str
    compute: Callable[..., torch.Tensor]
    explanation: str
    advice: str
    known_by_nan: bool = False


@dataclass(frozen=True)
class Blanks:
    """A fill-in kernel: its solution, and the names whose first assignment the learner writes.

    `template` is Python source that defines the kernel and its host function; `kernel` names the kernel.
    `slugs` says which misconception it is when one blank alone is wrong and the numbers do not tell.
    """

    template: str
    kernel: str
    names: tuple[str, ...]
    advice: dict[str, str] = field(default_factory=dict)
    slugs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Exercise:
    """One graded question. `entry` is the function the learner defines.

    kind "kernel": the entry takes and returns tensors; its Triton kernels are replayed on fresh data.
    kind "value":  the entry takes and returns plain numbers. Where several answers are right, `accept` says
                   why a value is none of them, or None, and `reference` returns one of them.
    kind "jax":    the entry takes and returns JAX arrays.
    """

    name: str
    notebook: str
    points: int
    entry: str
    signature: str
    cases: tuple[Case, ...]
    reference: Callable[..., object]
    kind: str = "kernel"
    bounds: dict[torch.dtype, Bound] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()
    accept: Callable[[object], Finding | None] | None = None
    blanks: Blanks | None = None
    autotuned: bool = False
    compiles: bool = False  # judging it compiles kernels for other GPUs
    stretch: bool = False
    output_dtype: torch.dtype | None = None
    limit_seconds: float = 10.0  # of computing, for all cases together
