"""What an exercise is: data, and the rules that only its subject needs.

The judge knows three ways of running an answer, one for each `Exercise.kind`, and no subject. It passes what it sees of
a case to the rules as an Observation (autograder/diagnosis), and the calls of a JAX case to `judge_calls` as a list of
Made (autograder/judge/jax_calls.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

import torch

from workshop.hints import answer_cell
from workshop.syllabus import Lesson

from ..verdict import Finding


class Tag(StrEnum):
    """What a case tests."""

    RAGGED = "ragged"  # the last block is not full
    SHORT = "short"  # few elements or columns: different patterns look alike
    EMPTY = "empty"  # no elements
    STRIDED = "strided"  # the row stride is larger than the row length
    DRAWN = "drawn"  # the shape is random, too
    MANY = "many"  # many rows
    WIDE = "wide"  # a row is too long for one block
    HALF = "half"  # float16 or bfloat16
    EQUAL = "equal"  # one value everywhere
    HUGE = "huge"  # exp overflows
    ASCENDING = "ascending"  # each block has a larger maximum than all before it
    DESCENDING = "descending"  # the largest element comes first
    NEGATIVE = "negative"  # exp of every element is 0
    FAR = "far"  # finite values from one end of the dtype to the other
    MASKED = "masked"  # rows that begin with blocks of -inf
    ALL_MASKED = "all-masked"  # a row of nothing but -inf
    AGAIN = "again"  # a call like an earlier one: the answer may keep something from it
    EXTREME = "extreme"  # a scalar at the end of its range
    REPEAT = "repeat"  # JAX: called several times, plainly and under jit
    SEEDS = "seeds"  # JAX: called with many seeds
    RATE = "rate"  # JAX: large enough for statistics
    OPTIONAL = "optional"  # JAX: an answer may refuse the case, but it must not return a wrong result


# With such values a kernel that is nearly right gives NaN.
UNUSUAL = {Tag.HUGE, Tag.DESCENDING, Tag.ASCENDING, Tag.MASKED, Tag.ALL_MASKED, Tag.NEGATIVE, Tag.FAR, Tag.EXTREME}


FAR = 1e5  # numbers beyond it are far from each other in the cases of a softmax


@dataclass(frozen=True)
class Strided:
    """A tensor argument: `values` laid out in memory with `row_stride` elements from row to row.

    The gaps between rows are not part of the tensor: an access to them is out of bounds.
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
class Large:
    """A tensor argument that is too large to hold: see judge/large.py. row_stride: as in Strided."""

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    row_stride: int | None = None

    @property
    def stride(self) -> tuple[int, ...]:
        return Strided(torch.empty(self.shape, device="meta"), self.row_stride).stride


@dataclass(frozen=True)
class Varying:
    """An integer that differs between the calls of one case, such as a seed. Under jax.jit it is traced."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class Cotangent:
    """Not an argument: the weights of the output in the gradient of a JAX function, an array of the output's shape."""

    values: torch.Tensor


Argument = Strided | Large | Varying | Cotangent | int | float


@dataclass(frozen=True)
class Case:
    """One call of the learner's function. For a JAX function: the calls that `Exercise.calls` lists.

    `make` draws the arguments from a seeded generator, so that every judgement has new numbers. `about` may be given as
    text, with blanks between the tags. An unknown tag raises ValueError.
    """

    name: str
    make: Callable[[torch.Generator], tuple[Argument, ...]]
    about: frozenset[Tag] = frozenset()
    gpu_only: bool = False

    def __post_init__(self):
        about = self.about.split() if isinstance(self.about, str) else self.about
        object.__setattr__(self, "about", frozenset(map(Tag, about)))


def integer(generator: torch.Generator, low: int, high: int) -> int:
    """A random integer from `low` to `high`, both included."""
    return int(torch.randint(low, high + 1, (), generator=generator))


def choice(generator: torch.Generator, values: Sequence):
    return values[integer(generator, 0, len(values) - 1)]


def spread(generator: torch.Generator, low: int, high: int, *shape: int) -> torch.Tensor:
    """Random float32 numbers of both signs. Their sizes are spread evenly over the powers of two, 2^low to 2^high."""
    exponents = low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
    signs = torch.randint(0, 2, shape, generator=generator) * 2 - 1
    return (signs * 2.0**exponents).float()


def rows_one_apart(x: torch.Tensor) -> torch.Tensor:
    """What a kernel reads from a contiguous matrix if row r begins at element r: the stride of a row is taken as 1."""
    return x.flatten().unfold(0, x.shape[1], 1)[: x.shape[0]]


def large_sizes(generator: torch.Generator, most: int = 100_000_000) -> tuple[int, ...]:
    """Three numbers of elements: one of 10⁴ to 10⁶, one beyond 2²⁴, and one between, all of them ragged."""
    low = 10 ** (4 + 2 * float(torch.rand((), generator=generator)))
    middle = 10 ** (6 + float(torch.rand((), generator=generator)))
    return tuple(int(n) | 1 for n in (low, middle, integer(generator, (1 << 24) + 2, most)))


def large_rows(generator: torch.Generator) -> tuple[tuple[int, int], ...]:
    """Shapes of large matrices: many short rows, beyond 2²⁴ elements in rows of some width, and two of long rows."""
    many, some, most = large_sizes(generator)
    narrow, usual = integer(generator, 3, 40), integer(generator, 200, 700)
    long, longer = integer(generator, 17_000, 30_000), integer(generator, 66_000, 131_000)
    return (
        (many // narrow + 1, narrow), (most // usual + 1, usual), (some // long + 1, long), (some // longer + 1, longer)
    )  # fmt: skip


def unfilled(*shape: int) -> Strided:
    """A tensor argument without values, for measuring time."""
    return Strided(torch.empty(shape, device="meta"))


@dataclass(frozen=True)
class Call:
    """One call of a JAX function. `variant` chooses one of the values of each Varying argument.

    grad: compute the gradient of the sum of the output times the Cotangent, with respect to the first argument.
    """

    variant: int = 0
    jit: bool = False
    grad: bool = False
    needs_kernel: bool = True  # False if a right answer may launch no kernel


@dataclass(frozen=True)
class Bound:
    """The largest difference between a right answer and the float64 reference.

    Elementwise |got - expected| <= relative * |expected| + absolute. If `row_sum` is given, the sum of each row must
    also agree within that relative error. This finds an accumulator with too few bits, even if the rounding of the
    output hides the error in every single element.
    """

    relative: float
    absolute: float = 0.0
    row_sum: float | None = None

    def of_exponents(self, largest: float) -> Bound:
        """The bound for float32 exponents up to `largest` that were rounded, as in exp(x - log(sum)).

        Above FAR, different numbers differ by much more than 1, or the case makes them so: there a softmax is 0 or 1.
        """
        if self.row_sum is None:
            return self
        more = 4 * 2.0**-24 * min(largest, FAR)
        return Bound(self.relative + more, self.absolute, self.row_sum + more)


@dataclass(frozen=True)
class Mistake:
    """A known misconception and what it computes. If the output agrees with it, the verdict explains it.

    Many mistakes give NaN. A NaN alone is evidence for this mistake only if `known_by_nan` is set.
    """

    slug: str
    compute: Callable[..., torch.Tensor]
    explanation: str
    advice: str
    known_by_nan: bool = False


@dataclass(frozen=True)
class Blanks:
    """A kernel with blanks: its solution, and the names whose first assignment the learner writes.

    `template` is Python source that defines the kernel and its host function; `kernel` names the kernel.
    `slugs` names the misconception of a blank, for the case that only this blank is wrong and the numbers fit none.
    """

    template: str
    kernel: str
    names: tuple[str, ...]
    advice: dict[str, str] = field(default_factory=dict)
    slugs: dict[str, str] = field(default_factory=dict)


MAX_COUNTED_COLUMNS = 8192


@dataclass(frozen=True)
class Exercise:
    """One graded question. `entry` is the function that the learner defines; `lesson` holds its notebook and points.

    kind "kernel": the entry takes and returns tensors; its Triton kernels are replayed on fresh data.
    kind "value":  the entry takes and returns plain numbers. If several answers are right, `accept` returns a Finding
                   for a wrong one and None for a right one, and `reference` returns one right answer.
    kind "jax":    the entry takes and returns JAX arrays; `calls` lists the calls of a case. `judge_calls` finds
                   what is wrong with them. Without `judge_calls`, each output is compared with the
                   reference. With it, `nearest` gives for each call of a case the right output that is nearest to what
                   was returned, and its bound: the map shows where they differ.

    A kernel exercise may have rules about its subject. `rules` explain one wrong case and are tried before the general
    patterns. `last_rules` are tried after them. `summaries` explain the whole answer. A rule is given an Observation. A
    summary is given all cases, as pairs of an Observation and a Finding or None, and then the Observation and the
    Finding that rank first. Each returns a Finding, or None if it does not apply.

    reads_per_element: how often the kernels may read an element of a tensor argument, at most; None if that is not
    judged. Rows of more than MAX_COUNTED_COLUMNS elements are not counted: they may fit no program.

    remark: of a right answer of kind "kernel", from its source and its traces: one sentence about it, or "".
    explain: of a wrong number that fits no mistake: what it means and what to try, from the arguments, the key (None if
    the answer is no dict), the number and the expected number. untold: the expected numbers are not shown.

    rests_on: the exercise whose answer this one takes. Where that is not solved, the learner is sent there.

    `drawn` makes more cases, other ones in every judgement, so that no table of the public cases passes.

    `large` draws cases of up to 10⁸ elements, with Large arguments. Each row of the output must follow from one row of
    each tensor, because only some are compared.

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
    remark: Callable[[str, list[dict]], str] = lambda source, traces: ""
    explain: Callable[[tuple, str | None, float, float], tuple[str, str]] | None = None
    untold: bool = False
    calls: Callable[[Case], tuple[Call, ...]] = lambda case: (Call(), Call(jit=True))
    judge_calls: Callable[..., Finding | None] | None = None
    nearest: Callable[[list], list[tuple[torch.Tensor, Bound]]] | None = None
    rests_on: str = ""
    drawn: Callable[[torch.Generator], tuple[Case, ...]] = lambda generator: ()
    large: Callable[[torch.Generator], tuple[Case, ...]] = lambda generator: ()
    blanks: Blanks | None = None
    timing_cases: tuple[Case, ...] = ()
    contiguous: bool = False  # the output must be contiguous
    reads_per_element: int | None = None
    compiles: bool = False  # judging it compiles kernels for other GPUs
    output_dtype: torch.dtype | None = None
    limit_seconds: float = 10.0  # of computing, for all cases together

    @property
    def name(self) -> str:
        return self.lesson.name

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the entry's parameters, as the signature has them."""
        return tuple(name.strip() for name in self.signature.partition("(")[2].partition(")")[0].split(","))

    @property
    def notebook(self) -> str:
        return self.lesson.notebook

    @property
    def points(self) -> int:
        return self.lesson.points

    @property
    def stretch(self) -> bool:
        return self.lesson.stretch

    @property
    def starter(self) -> str:
        """What learners get in the answer cell; empty if the lessons are not there, or have no such exercise."""
        return _starter(self.name)


@cache
def _starter(name: str) -> str:
    cell = answer_cell(name)
    return cell[1] if cell else ""
