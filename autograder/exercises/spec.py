"""What an exercise is: data, and the rules that only its subject needs. The judge gives them meaning.

The judge knows three ways of running an answer, by `Exercise.kind`, and no subject. What it sees of a case reaches the
rules as an Observation (autograder/diagnosis), what JAX calls gave as a list of JaxCase (autograder/judge/jax.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import torch

from workshop.syllabus import Lesson

from ..verdict import Finding


class Tag(StrEnum):
    """What a case is there to show."""

    RAGGED = "ragged"  # the last block is not full
    SHORT = "short"  # so few elements, or columns, that patterns look alike
    EMPTY = "empty"  # no elements
    STRIDED = "strided"  # rows lie further apart than they are long
    DRAWN = "drawn"  # the shape is drawn, too
    MANY = "many"  # many rows
    WIDE = "wide"  # a row that fits no block
    HALF = "half"  # float16 or bfloat16
    EQUAL = "equal"  # one value everywhere
    HUGE = "huge"  # exp overflows
    ASCENDING = "ascending"  # each block has a larger maximum than all before it
    DESCENDING = "descending"  # the largest element comes first
    NEGATIVE = "negative"  # exp of every element is 0
    MASKED = "masked"  # rows that begin with blocks of -inf
    ALL_MASKED = "all-masked"  # a row of nothing but -inf
    EXTREME = "extreme"  # a scalar at the end of its range
    REPEAT = "repeat"  # JAX: called several times, plainly and under jit
    RATE = "rate"  # JAX: large enough for its statistics to tell
    OPTIONAL = "optional"  # JAX: refusing is right, a wrong result is not


# Values that make NaN out of a kernel that is nearly right.
UNUSUAL = {Tag.HUGE, Tag.DESCENDING, Tag.ASCENDING, Tag.MASKED, Tag.ALL_MASKED, Tag.NEGATIVE, Tag.EXTREME}


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


@dataclass(frozen=True)
class Varying:
    """A whole number that the calls of one case differ in, such as a seed. Under jax.jit it is traced."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class Cotangent:
    """Not an argument: what the gradient of a JAX function is multiplied by, an array of the output's shape."""

    values: torch.Tensor


Argument = Strided | Varying | Cotangent | int | float


@dataclass(frozen=True)
class Case:
    """One call of the learner's function, or, of a JAX function, the calls that `Exercise.calls` lists.

    `make` draws the arguments from a seeded generator, so that every judgement has fresh numbers. `about` may be
    given as text, tags between blanks; ValueError for a tag that Tag does not have.
    """

    name: str
    make: Callable[[torch.Generator], tuple[Argument, ...]]
    about: frozenset[Tag] = frozenset()
    gpu_only: bool = False

    def __post_init__(self):
        about = self.about.split() if isinstance(self.about, str) else self.about
        object.__setattr__(self, "about", frozenset(map(Tag, about)))


@dataclass(frozen=True)
class Call:
    """One call of a JAX function. `variant` chooses among the values of Varying arguments.

    grad: the gradient in the first argument, of the sum of the output times the Cotangent.
    """

    variant: int = 0
    jit: bool = False
    grad: bool = False
    needs_kernel: bool = True  # False where a right answer may do without


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
    """One graded question. `entry` is the function the learner defines; `lesson` says where it stands, and its points.

    kind "kernel": the entry takes and returns tensors; its Triton kernels are replayed on fresh data.
    kind "value":  the entry takes and returns plain numbers. Where several answers are right, `accept` says
                   why a value is none of them, or None, and `reference` returns one of them.
    kind "jax":    the entry takes and returns JAX arrays; `calls` lists the calls of a case. `judge_calls` finds what
                   is wrong with them; without it, each output is compared with the reference.

    Rules of a kernel exercise, each for what only its subject can say: `rules` explain one wrong case before the
    general patterns are tried, `last_rules` where none of these fits, and `summaries` explain the answer as a whole.
    A rule is given an Observation; a summary all cases as pairs of Observation and Finding or None, and the
    Observation and Finding that rank first. Each returns a Finding, or None where it has nothing to say.

    timing_cases: an exercise about autotuning has two, a small and a large one. Their values do not matter.
    """

    lesson: Lesson
    entry: str
    signature: str
    cases: tuple[Case, ...]
    reference: Callable[..., object]
    kind: str = "kernel"
    bounds: dict[torch.dtype, Bound] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()
    rules: tuple[Callable[..., Finding | None], ...] = ()
    last_rules: tuple[Callable[..., Finding | None], ...] = ()
    summaries: tuple[Callable[..., Finding | None], ...] = ()
    accept: Callable[[object], Finding | None] | None = None
    calls: Callable[[Case], tuple[Call, ...]] = lambda case: (Call(), Call(jit=True))
    judge_calls: Callable[..., Finding | None] | None = None
    blanks: Blanks | None = None
    timing_cases: tuple[Case, ...] = ()
    contiguous: bool = False  # the output has to be
    compiles: bool = False  # judging it compiles kernels for other GPUs
    output_dtype: torch.dtype | None = None
    limit_seconds: float = 10.0  # of computing, for all cases together

    @property
    def name(self) -> str:
        return self.lesson.name

    @property
    def notebook(self) -> str:
        return self.lesson.notebook

    @property
    def points(self) -> int:
        return self.lesson.points

    @property
    def stretch(self) -> bool:
        return self.lesson.stretch
