"""What an exercise and its cases are: data, and small functions that only its subject needs.

A case is one call of the learner's function, its arguments, and what it tests. The judge knows three ways of running an
answer, one for each `Exercise.kind`, and no subject. It passes the calls of a JAX case to `judge_calls` as a list of
JaxCall (autograder/judge/jax.py).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import torch

from workshop.hints import answer_cell
from workshop.syllabus import Lesson, find

from ..box.wire import Trace
from ..verdict import Finding

if TYPE_CHECKING:  # it draws cases, which are defined here
    from .design import Inputs

# -- cases -----------------------------------------------------------------------------------------------


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
    """A tensor argument that is too large to hold: see judge/trials.py. row_stride: as in Strided.

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


# -- exercises -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """One call of a JAX function. `variant` chooses one of the values of each Varying argument.

    grad: compute the value and the gradient of the sum of the output times the Cotangent, with respect to the first
    argument. Both are judged.
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
    absolute: float | torch.Tensor = 0.0
    row_sum: float | None = None
    size: float | torch.Tensor = 1e-6  # below it, a number is small: its error is seen against this

    def of_exponents(self, largest: float) -> Bound:
        """The bound for float32 exponents up to `largest` that were rounded, as in exp(x - log(sum)).

        Above FAR, different numbers differ by much more than 1, or the case makes them so: there a softmax is 0 or 1.
        """
        if self.row_sum is None:
            return self
        more = 4 * 2.0**-24 * min(largest, FAR)
        return Bound(self.relative + more, self.absolute, self.row_sum + more)

    def of_sums(self, sums: Sums | None) -> Bound:
        """The bound for outputs that are sums of products, accumulated in float32 in any order.

        Each addition rounds by at most u = 2^-24 of the sum of magnitudes. Rounding errors of n additions grow as √n u:
        Higham and Mary, "A new approach to probabilistic rounding error analysis", 2019, with their λ = 4. Matrix units
        cut off in place of rounding, once for 16 products or fewer: 2 u each, and all in one direction. Fasi, Higham,
        Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021.
        """
        if sums is None:
            return self
        rounding = 2.0**-24 * (4 * math.sqrt(sums.terms) + 2 * sums.terms / 16)
        more = (rounding + sums.inexact) * sums.magnitude
        size = 1.57 * sums.magnitude / math.sqrt(sums.terms)  # of a sum of normal numbers
        return replace(self, absolute=self.absolute + more, size=size)


def bounds(float32: Bound, float16: Bound, bfloat16: Bound) -> dict[torch.dtype, Bound]:
    return {torch.float32: float32, torch.float16: float16, torch.bfloat16: bfloat16}


class Sums(NamedTuple):
    """What decides the rounding of sums of products: how many terms each has, and the sum of their magnitudes.

    inexact: the relative error that each product may have by itself, as with TF32.
    """

    terms: int
    magnitude: torch.Tensor  # float64, of the output's shape
    inexact: float = 0.0


@dataclass(frozen=True)
class Mistake:
    """A known misconception and what it computes. If the output agrees with it, the verdict explains it.

    Many mistakes give nothing but NaN or 0. That is evidence for this mistake only if `known_by_constant` is set.
    """

    slug: str
    compute: Callable[..., torch.Tensor]
    explanation: str
    advice: str
    known_by_constant: bool = False


def wrong_values(*rows: tuple[Callable, str, str]) -> tuple[Mistake, ...]:
    """Mistakes without a name of their own: what each computes, what that means, and what to try."""
    return tuple(Mistake("wrong-value", *row) for row in rows)


def changed(function: Callable, **new) -> Callable:
    """`function` of other arguments, by the names of its parameters. A new one may be a function of the old one."""
    names = tuple(inspect.signature(function).parameters)

    def computed(*given):
        others = {name: value(given[names.index(name)]) if callable(value) else value for name, value in new.items()}
        return function(**dict(zip(names, given)) | others)

    return computed


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
    """One graded question. `entry` is the function that the learner defines: the name in front of the signature.

    lesson: its notebook and points; if it is left out, it is the exercise of the syllabus that has the function's name.

    kind "kernel": the entry takes and returns tensors; its Triton kernels are replayed on fresh data.
    kind "value":  the entry takes and returns plain numbers. If several answers are right, `accept` returns a Finding
                   for a wrong one and None for a right one, and `reference` returns one right answer.
    kind "jax":    the entry takes and returns JAX arrays; `calls` lists the calls of a case. Each output is compared
                   with the reference. `judge_calls` is given the calls of a case whose outputs are right one by one,
                   without the gradients, and finds what is wrong with them together. `random`: many outputs are
                   right. Then the reference takes the output as its last argument, and gives the right output nearest
                   to it; mistakes take it, too, and those of a gradient the cotangent and the gradient after it.

    programs_at_least: from the arguments of a case, and `multiprocessors` of the device, how many programs an answer
    must launch. None asks for no number. in_one_program: no launch may have more than one.
    fill: what the starter fills its output with: an element that still has this value was never written.

    reads_per_element: how often the kernels may read an element of a tensor argument, at most; None if that is not
    judged. Rows of more than MAX_COUNTED_COLUMNS elements are not counted: they may fit no program. A backward pass may
    read as often as it wants to.

    writes_once: the kernels may write no more than the output: nothing in between goes through memory.

    sums: of an output whose elements are sums of products, from the arguments: what their bounds follow from. Of a
    gradient it is told the number of the argument, as `gradient`.

    remark: of a right answer of kind "kernel", from its traces: one sentence about it, or "".
    explain: of a wrong number that fits no mistake: what it means and what to try, from the arguments, the key (None if
    the answer is no dict), the number and the expected number. untold: the expected numbers are not shown.

    rests_on: the exercise whose answer this one takes. Where that is not solved, the learner is sent there.

    inputs: what the arguments may be. The cases follow from it, other ones in every judgement (design.py), and so do
    cases of up to 10⁸ elements. `cases` are those that it cannot say: all cases of a JAX exercise, or of one without
    arguments. If `inputs.large`, each row of the output follows from one row of each tensor: only some are compared.
    large: draws the large cases of an exercise without `inputs`.

    timing_cases: an exercise about autotuning has two, a small and a large one. Their values do not matter.
    """

    signature: str
    reference: Callable[..., object]
    lesson: Lesson | None = None
    cases: tuple[Case, ...] = ()
    inputs: Inputs | None = None
    large: Callable[[torch.Generator], tuple[Case, ...]] = lambda generator: ()
    kind: str = "kernel"
    bounds: dict[torch.dtype, Bound] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()
    programs_at_least: Callable[..., int] | None = None
    in_one_launch: bool = False  # programs_at_least is about the largest launch, not about all together
    in_one_program: bool = False
    fill: float | None = None
    accept: Callable[[object], Finding | None] | None = None
    remark: Callable[[list[Trace]], str] = lambda traces: ""
    explain: Callable[[tuple, str | None, float, float], tuple[str, str]] | None = None
    untold: bool = False
    calls: Callable[[Case], tuple[Call, ...]] = lambda case: (Call(), Call(jit=True))
    judge_calls: Callable[[list], Finding | None] | None = None
    random: bool = False
    rests_on: str = ""
    blanks: Blanks | None = None
    timing_cases: tuple[Case, ...] = ()
    contiguous: bool = False  # the output must be contiguous
    reads_per_element: int | None = None
    writes_once: bool = False
    sums: Callable[..., Sums] | None = None
    compiles: bool = False  # judging it compiles kernels for other GPUs
    output_dtype: torch.dtype | None = None
    computes: bool = False  # the host may compute with one number for each row, such as the mean of a loss
    operator: bool = False  # it is an operator that torch knows: opcheck and torch.compile accept it
    same_bits: bool = False  # each call must give the same bits: no atomic addition in floating point
    limit_seconds: float = 10.0  # of computing, for all cases together
    entry: str = ""

    def __post_init__(self):
        object.__setattr__(self, "entry", self.signature.partition("(")[0])
        object.__setattr__(self, "lesson", self.lesson or find(self.entry))

    def cases_of(self, generator: torch.Generator, on_gpu: bool = False) -> tuple[Case, ...]:
        """All cases of one judgement."""
        return self.cases + (self.inputs.cases(generator, on_gpu) if self.inputs else ())

    def large_cases(self, generator: torch.Generator, bounds: Sequence[int] = ()) -> tuple[Case, ...]:
        """Cases of 10⁴ to 10⁸ elements, with Large arguments. bounds: numbers that some sizes exceed."""
        return self.inputs.large_cases(generator, bounds) if self.inputs else self.large(generator)

    def expected(self, case: Case, values: Sequence) -> torch.Tensor:
        """What a right answer gives for these values of a case's arguments: an output, or the gradient of one of them.

        In float64, and infinite where the dtype of the output has no number so large.
        """
        if case.gradient is not None:
            *values, incoming = values
            argument = values[case.gradient] = values[case.gradient].double().requires_grad_()
        expected = self.reference(*values)
        expected = expected if case.pick is None else expected[case.pick]
        if case.gradient is not None:
            incoming = incoming.double().reshape(expected.shape)
            return torch.autograd.grad((expected * incoming).sum(), argument)[0]  # grad_outputs would import sympy
        tensors = (value.dtype for value in values if isinstance(value, torch.Tensor))
        dtype = self.output_dtype or next(tensors, torch.float32)
        if expected.dtype != torch.float64 or not dtype.is_floating_point:
            return expected
        about = torch.finfo(dtype)
        most = about.max * (1 + about.eps / 4)  # halfway to the next power of two: it is rounded to infinity
        beyond = expected.abs() >= most
        return torch.where(beyond, torch.inf * expected.sign(), expected) if beyond.any() else expected

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

    @cached_property
    def starter(self) -> str:
        """What learners get in the answer cell; empty if the lessons are not there, or have no such exercise."""
        return (answer_cell(self.name) or ("", ""))[1]
