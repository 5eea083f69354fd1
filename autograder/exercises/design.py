"""The cases of an exercise, from a declaration of what its arguments may be.

An `Inputs` declares axes: the dtypes, the sizes of each dimension, the row strides, the kinds of values, the numbers.
Each axis has levels, and `pairwise` chooses combinations of them, others in every judgement, in which each level of one
axis meets each level of every other axis. A level that is there for its own sake is tried once (`once`).

Sources: Ostrand and Balcer, "The category-partition method", 1988, for levels that are tried once; Cohen and others,
"The AETG system", 1997, for the greedy choice of combinations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, cycle, product

import torch

from ..tensors import dtype_name
from .spec import Case, Cotangent, Large, Strided, Tag, choice, integer

RANKS = 1, 2, 3, 4
LEADING = (3, 5), (2, 3), (2, 3)  # lengths of the axes before the last one
CANDIDATES = 8  # combinations that are tried for each place of a design
BEGUN = 8  # calls of plain values that others resemble in all but one

# -- levels ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Level:
    """One kind of choice on an axis. `draw` makes the choice from a seeded generator.

    once: it need not meet the levels of other axes. only_with: by axis, the names of the levels that it may meet. Where
    there are none, no drawn case has it.
    """

    name: str
    draw: Callable[[torch.Generator], object] = lambda generator: None
    once: bool = False
    gpu_only: bool = False
    only_with: Mapping[str, Iterable[str]] = field(default_factory=dict)


Axes = dict[str, tuple[Level, ...]]
Combination = dict[str, Level]


def pairwise(axes: Axes, generator: torch.Generator, begun: Sequence[Combination] = ()) -> list[Combination]:
    """Combinations in which any two levels of different axes meet, if they may; each `once` level is in one of them.

    The first level of an axis is the plainest one: about half of the companions of a `once` level are that. begun: the
    first combinations.
    """
    crossed = {axis: tuple(level for level in levels if not level.once) for axis, levels in axes.items()}
    wanted = {
        _pair((a, x), (b, y))
        for a, b in combinations(crossed, 2) for x in crossed[a] for y in crossed[b]
        if _may_meet(a, x, b, y)
    }  # fmt: skip
    design = list(begun)
    wanted -= {pair for each in begun for pair in _pairs(each)}
    while wanted:
        pair = dict(choice(generator, sorted(map(sorted, wanted))))
        around = {axis: next(level for level in axes[axis] if level.name == name) for axis, name in pair.items()}
        tried = filter(None, (_filled(around, crossed, wanted, generator) for _ in range(CANDIDATES)))
        best = max(tried, key=lambda each: len(_pairs(each) & wanted), default=None)
        wanted -= {frozenset(pair.items())} if best is None else _pairs(best)
        design += [best] if best else []
    for axis, level in ((axis, level) for axis, levels in axes.items() for level in levels):
        asked = (level.once or len(axes) == 1) and () not in level.only_with.values()
        if asked and not any(made[axis] is level for made in design):
            strides = STRIDES[:2] if level.name == ONE and "row_stride" in axes else ()  # easily forgotten there
            forms = [{axis: level, "row_stride": stride} for stride in strides] or [{axis: level}]
            design += filter(None, (_around(form, axes, generator) for form in forms))
    return design


def _around(begun: Combination, axes: Axes, generator: torch.Generator) -> Combination | None:
    """A combination with these levels, and few others that are tried once."""
    for _ in range(50):
        plain = {a: levels[:1] if integer(generator, 0, 1) else levels for a, levels in axes.items()}
        if made := _filled(begun, plain, set(), generator) or _filled(begun, axes, set(), generator):
            return made
    return None


def _filled(begun: Combination, axes: Axes, wanted: set, generator: torch.Generator) -> Combination | None:
    """A combination with these levels. Each other axis gets the level that makes most of the wanted pairs."""
    made, others = dict(begun), sorted(axes.keys() - begun.keys())
    for axis in (others[i] for i in torch.randperm(len(others), generator=generator).tolist()):
        fit = [level for level in axes[axis] if all(_may_meet(axis, level, a, each) for a, each in made.items())]
        fit = [level for level in fit if not level.once] or fit
        if not fit:
            return None
        new = [sum(_pair((axis, level), each) in wanted for each in made.items()) for level in fit]
        made[axis] = choice(generator, [level for level, count in zip(fit, new) if count == max(new)])
    return made


def _pairs(made: Combination) -> set:
    return {_pair(one, other) for one, other in combinations(made.items(), 2)}


def _pair(one: tuple[str, Level], other: tuple[str, Level]) -> frozenset:
    return frozenset(((one[0], one[1].name), (other[0], other[1].name)))


def _may_meet(a: str, x: Level, b: str, y: Level) -> bool:
    free = not x.only_with and not y.only_with
    return free or y.name in x.only_with.get(b, (y.name,)) and x.name in y.only_with.get(a, (x.name,))


# -- sizes -------------------------------------------------------------------------------------------------


def odd(low: int, high: int):
    return lambda generator: _spread_over(generator, low, high) | 1


def even(most: int, smallest: int = 4, largest: int = 9):
    """A multiple of a power of two, 2^smallest to 2^largest, that is no power of two itself."""

    def draw(generator: torch.Generator) -> int:
        power = 1 << integer(generator, smallest, largest)
        return power * (2 * _spread_over(generator, 1, max(1, (most // power - 1) // 2)) + 1)

    return draw


def fixed(*values):
    return lambda generator: choice(generator, values)


def between(low: int, high: int):
    return lambda generator: integer(generator, low, high)


def of_each_size(low: int, high: int):
    """Numbers of each size between the two are as likely: their logarithm is spread evenly."""
    return lambda generator: _spread_over(generator, low, high)


def each_of(*values) -> tuple[Level, ...]:
    """A level for each value."""
    return tuple(Level(str(value), fixed(value)) for value in values)


def memory_of_a_program(much: int, most: int) -> tuple[Level, ...]:
    """Bytes of shared memory. Powers of two fill that of some devices to the last byte."""
    powers = [1 << k for k in range(11, 17)]
    return (
        Level("none", fixed(0)),
        Level("little", between(1, 512)),
        Level("some", of_each_size(2000, much)),
        Level("much", between(much, most)),
        Level("a power of two", fixed(*powers)),
        Level("one more", fixed(*(n + 1 for n in powers))),
    )


def rows_of(names: str, *rows: tuple) -> tuple[dict, ...]:
    """Cases that come first: their values in the order of the names, which blanks separate."""
    return tuple(dict(zip(names.split(), row, strict=True)) for row in rows)


MOST_IN_A_ROW = 1_000_000  # an answer may take a row as one block, of 2²⁰ elements at most
LONG = (66_000, 72_000), (100_000, MOST_IN_A_ROW)  # a dimension that is large alone: more than 16 bits can count
MANY = 2_100_000, 2_300_000  # more blocks of 32 than a grid's second axis has places
LONGER = LONG[0], MANY  # where no answer takes all of it as one block
BOTH = 4300, 7500  # two that are large together
EXCHANGED, FEWER, MUCH = (24, 300), (5, 40), 100_000  # two that change places, and elements of a tensor
ALIKE = 1100, 1900  # two of as many bits


@dataclass(frozen=True)
class Dimension:
    """A dimension, which arguments share by its name, and the kinds of sizes that it has.

    large: ends between which it is large; () if it never is.
    """

    name: str
    sizes: tuple[Level, ...]
    large: tuple[tuple[int, int], ...] = LONG


RAGGED, EVEN, WHOLE, ONE = "ragged", "a multiple of a power of two", "whole blocks", "one"


def elements(name: str) -> Dimension:
    """The number of elements of a vector."""
    return Dimension(name, _full(2600, 1024, 2048) + _few(0) + (
        Level("large", odd(90_000, 110_000), once=True, gpu_only=True),
    ))  # fmt: skip


def columns(name: str, least: int = 1, *more: Level) -> Dimension:
    """The length of a row: longer than most blocks, so that a loop over blocks has several steps."""
    short = Level("short", between(2, 40), once=True)
    return Dimension(name, (*_full(4400, 2048, 4096), *_few(least), short, *more))


def rows(name: str, least: int = 0, short: Iterable[str] = ("short",)) -> Dimension:
    """The number of rows. Many of them are tried with short ones, the names of sizes of the other dimension."""
    own = {"columns": short, **OF_OTHER_ROWS}  # a program that takes several rows has other ones
    many = Level("many", between(300, 400), once=True, only_with=own)
    more = Level("thousands", odd(1500, 2000), once=True, gpu_only=True)
    return Dimension(name, (Level("few", between(3, 6)), *_few(least), many, more))


def _full(most: int, *whole: int) -> tuple[Level, ...]:
    beside = {"one less than whole blocks": max(whole) - 1, "one more than whole blocks": max(whole) + 1}
    once = (Level(name, fixed(n), once=True, only_with={"rank": (ONE,)}) for name, n in beside.items())
    return Level(RAGGED, odd(most // 4, most)), Level(EVEN, even(most)), Level(WHOLE, fixed(*whole)), *once


def of_blocks(low: int, high: int, *whole: int, power: int = 4) -> tuple[Level, ...]:
    """Sizes whose last block is not full, whole blocks, and a multiple of 2^power."""
    return (
        Level(RAGGED, odd(low, high)),
        Level(WHOLE, fixed(*whole)),
        Level(EVEN, even(high, power, power), once=True),
    )


def _few(least: int) -> tuple[Level, ...]:
    return tuple(Level(words, fixed(n), once=True) for n, words in ((0, "none"), (1, ONE)) if n >= least)


# -- values and row strides ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Values(Level):
    """One kind of numbers in tensors. `name` is what a learner reads; it is empty for ordinary numbers.

    about: the tags of a case with them. fill(shape, dtype, generator): the numbers, as any floating dtype. Where the
    result has to be finite, `fill` sees to it. Where an exercise draws its tensors together (`Inputs.together`), what
    `fill` takes is between the two.
    """

    fill: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]] = None
    about: str = ""


def tried_once(name: str, fill: Callable, about: str = "", **only_with: Iterable[str]) -> Values:
    """Numbers that need not meet the levels of other axes. only_with: as in Level."""
    return Values(name, once=True, only_with=only_with, fill=fill, about=about)


def normal_but(*changes: tuple):
    """`fill` of normal numbers with other values at some places: (place, value) of each."""

    def fill(shape, dtype, generator):
        x = torch.randn(shape, generator=generator)
        for place, value in changes:
            x[place] = value
        return x

    return fill


NORMAL = Values("", fill=normal_but())
FIRST, LAST = (..., slice(1)), (..., slice(-1, None))  # of each row
OF_OTHER_ROWS = {"row_stride": ("contiguous", "gaps")}  # what a level may meet that needs rows of their own
BY_ROWS, TRANSPOSED, SPREAD, EQUAL = "by rows", "transposed", "every other column", "equal columns"
LAYOUT_AXES = "layout of 0", "layout of 1"
SEVERAL = {"heads": ("few",), "rows": ("few", RAGGED, WHOLE)}  # one row alone has no stride
STRIDES = (
    Level("contiguous", lambda generator: None),
    Level("gaps", lambda generator: integer(generator, 1, 60)),
    Level("equal rows", lambda generator: 0),
    # as x.unfold(0, n, 1) has them; without gaps between the columns, too
    Level("rows that overlap", fixed(-1), once=True, only_with=dict.fromkeys(LAYOUT_AXES, (BY_ROWS,)) | SEVERAL),
)
ONLY_THE_LAST = Level("gaps in the last one", fixed(1), once=True, only_with=SEVERAL)
# All inputs fit what wants aligned rows, and the output does not.
ALIGNED = Level(
    "aligned rows", between(1, 60), once=True,
    only_with=dict.fromkeys(LAYOUT_AXES, (BY_ROWS,)) | dict.fromkeys(("n", "columns"), (RAGGED,)),
)  # fmt: skip
LAYOUTS = (
    Level(BY_ROWS, lambda generator: BY_ROWS),
    Level(TRANSPOSED, lambda generator: TRANSPOSED, only_with=OF_OTHER_ROWS),
    Level(SPREAD, lambda generator: SPREAD),
    Level(EQUAL, lambda generator: EQUAL, once=True),
)


def spread(generator: torch.Generator, low: int, high: int, *shape: int) -> torch.Tensor:
    """Random float32 numbers of both signs. Their sizes are spread evenly over the powers of two, 2^low to 2^high."""
    exponents = low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
    signs = torch.randint(0, 2, shape, generator=generator) * 2 - 1
    return (signs * 2.0**exponents).float()


def of_all_sizes(spare: int = 1) -> Values:
    """Numbers of all sizes that the dtype has. `spare` powers of two are left, so that the results are finite."""

    def fill(shape, dtype, generator):
        low, high = (-14, 15) if dtype == torch.float16 else (-120, 127)
        return spread(generator, low + 4, high - spare, *shape)

    return Values("numbers of all sizes", fill=fill)


def with_special_ones(*special: float) -> Values:
    """Ordinary numbers, and among them infinities, NaN, −0 and numbers too small to be normal; and `special`.

    The last bit of the smallest ones is lost where they are halved.
    """

    def fill(shape, dtype, generator):
        tiny = torch.finfo(dtype).smallest_normal
        least = tiny * torch.finfo(dtype).eps
        known = torch.tensor([*special, -0.0, 0.0, tiny / 4, -tiny / 8, 3 * least, -least])
        x = torch.randn(shape, generator=generator)
        many = max(x.numel() // 10, min(len(known), -(-x.numel() // 3)))  # each of them, if there is room
        at = torch.randperm(x.numel(), generator=generator)[:many]
        x.view(-1)[at] = known[torch.randperm(len(known), generator=generator)].repeat(-(-many // len(known)))[:many]
        return x

    return Values("inf, NaN and −0 among them", about="special", fill=fill)


# -- arguments -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorArgument:
    """A tensor. shape: names of dimensions. row_stride: any is allowed, 0 too; otherwise it is contiguous.

    any_strides: of a matrix with any row stride: it may be transposed in memory, or have gaps between its columns.
    any_rank: its shape has the elements of the only dimension along one, two or three axes.
    dtype: its own; None for that of the case. span: of numbers of a Large one, from the sizes; see tensors.seeded.
    whole: whether a right answer reads all of its elements.
    """

    shape: tuple[str, ...]
    row_stride: bool = False
    any_strides: bool = False
    any_rank: bool = False
    dtype: torch.dtype | None = None
    span: Callable[[Mapping[str, int]], tuple[float, float] | None] = lambda sizes: (-4, 4)
    whole: bool = True


@dataclass(frozen=True)
class Number:
    """A plain value with its kinds. Without kinds it is the size of the dimension of its name."""

    name: str
    levels: tuple[Level, ...] = ()


@dataclass(frozen=True)
class Inputs:
    """What the arguments of an exercise may be.

    first: the cases that come first in each judgement, as keywords of `case`. rows: the dimension along which the rows
    of the output lie, if each follows from a part of the tensors: some rows of large cases are compared. large: the
    same, where large cases have the shapes of `large_matrices`.
    derived: further sizes of Large tensors, which follow from those of the dimensions.
    asked: of plain values: whether this call has one right answer by the lesson. named: the name of such a call.
    together(sizes, kind, dtype, generator): the tensors, where the values of one follow from another. Their shapes
    follow from `sizes` alone, because a plan of the launches holds for every draw of a case.
    gradients: arguments whose gradients are judged in some of the cases: number -> name. incoming: the dimensions of
    the output; none if it is one number.
    long: the kinds of values in `beyond`, if ordinary ones hide what a loop over a long row leaves out.
    outputs: the names of the outputs, if the function returns several. A case judges one of them.
    """

    arguments: tuple[TensorArgument | Number, ...]
    dimensions: tuple[Dimension, ...] = ()
    dtypes: tuple[torch.dtype, ...] = (torch.float32,)
    values: tuple[Values, ...] = (NORMAL,)
    first: tuple[dict, ...] = ()
    large: str = ""
    rows: str = ""
    asked: Callable[..., bool] = lambda *arguments: True
    named: Callable[..., str] = lambda *arguments: ", ".join(map(str, arguments))
    together: Callable[[Mapping[str, int], Values, torch.dtype, torch.Generator], tuple] | None = None
    gradients: Mapping[int, str] = field(default_factory=dict)
    incoming: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    long: tuple[str, ...] = ("",)
    derived: Callable[[Mapping[str, int]], dict[str, int]] = lambda sizes: {}

    @property
    def tensors(self) -> tuple[TensorArgument, ...]:
        return tuple(each for each in self.arguments if isinstance(each, TensorArgument))

    @property
    def any_rank(self) -> bool:
        return any(each.any_rank for each in self.tensors)

    @property
    def alike(self) -> tuple[int, int] | None:
        """The numbers of the first two arguments that may be one tensor."""
        tensors = [(i, each) for i, each in enumerate(self.arguments) if isinstance(each, TensorArgument)]
        kinds = [(i, (len(each.shape), each.dtype, each.row_stride, each.any_strides)) for i, each in tensors]
        return next(((i, j) for (i, one), (j, other) in combinations(kinds, 2) if one == other), None)

    @property
    def _unlike(self) -> list[tuple[str, str]]:
        """The names of the dimensions in which these two differ, axis by axis."""
        pairs = zip(*(self.arguments[number].shape for number in self.alike))
        return [(one, other) for one, other in pairs if one != other]

    def _plain(self) -> dict[str, tuple[str, ...]]:
        """With which levels two tensors may be one: plain values, and plain sizes where their dimensions differ."""
        differ = {name for names in self._unlike for name in names}
        plain = {each.name: (each.sizes[0].name,) for each in self.dimensions if each.name in differ}
        return plain | {"values": (self.values[0].name,)}

    def axes(self, on_gpu: bool = False) -> Axes:
        found = {each.name: each.sizes for each in self.dimensions}
        found |= {each.name: each.levels for each in self.arguments if isinstance(each, Number) and each.levels}
        if self.tensors:
            found["dtype"] = tuple(Level(dtype_name(each), fixed(each)) for each in self.dtypes)
            found["values"] = self.values
        if strided := sum(each.row_stride for each in self.tensors):
            found["row_stride"] = STRIDES + (ONLY_THE_LAST, ALIGNED) * (strided > 1)
        found |= {f"layout of {i}": LAYOUTS for i, each in enumerate(self.tensors) if each.any_strides}
        if self.gradients:
            asked = (None, *self.gradients)
            found["gradient"] = tuple(Level(self.gradients.get(each, "none"), fixed(each)) for each in asked)
        if self.alike:
            yes = Level("yes", lambda generator: True, once=True, only_with=self._plain())
            found["twice"] = Level("no", lambda generator: False), yes
        if self.any_rank:
            found["rank"] = tuple(Level(ONE if rank == 1 else str(rank), fixed(rank), once=rank > 3) for rank in RANKS)
        # A GPU fuses x * c - m into one operation: right answers differ for huge x. The executor has judged those.
        runs = (lambda each: "far" not in getattr(each, "about", "")) if on_gpu else lambda each: not each.gpu_only
        return {axis: tuple(filter(runs, levels)) for axis, levels in found.items()}

    def cases(self, generator: torch.Generator, on_gpu: bool = False) -> tuple[Case, ...]:
        """The first cases, a pairwise design, and one element. Cases with ordinary values come before the others."""
        found = [self.case(**each) for each in self.first]
        designs = 1 if self.tensors else 2  # plain values cost little, and three of them may have to meet
        axes = self.axes(on_gpu)
        even = {each: level for each, levels in axes.items() for level in levels if level.name == EVEN}
        begun = [_filled(even, axes, set(), generator)] if even and self.tensors else []
        chosen = [each for _ in range(designs) for each in pairwise(axes, generator, [each for each in begun if each])]
        if all(ONE in [level.name for level in each.sizes] for each in self.dimensions):
            one = {each: level for each, levels in axes.items() for level in levels if level.name == ONE}
            chosen.append(_filled(one, axes, set(), generator))
        drawn = [case for each in chosen for case in self._drawn(each, generator)]
        if not self.tensors and not self.dimensions:
            drawn += self._in_one_argument(generator)
        drawn.sort(key=lambda case: len(case.about))
        if self.tensors:
            whole = {axis: {each.name: each for each in levels}.get(WHOLE, levels[0]) for axis, levels in axes.items()}
            places = (-1, 0) if len(self.tensors) > 1 else (-1,)
            found += [_shifted(self._drawn(whole, generator)[0], place) for place in places]
        found += drawn
        return tuple({case.name: case for case in found[::-1]}.values())[::-1]

    def _in_one_argument(self, generator: torch.Generator) -> list[Case]:
        """Calls that differ from one call in one plain value each, or in the order of two: what is kept shows."""
        def asked(facts: dict) -> bool:
            return self.asked(*(facts[each.name] for each in self.arguments))

        found, begun = [], 0
        for _ in range(100):
            levels = {each.name: choice(generator, each.levels) for each in self.arguments}
            call = {name: level.draw(generator) for name, level in levels.items()}
            if not asked(call) or (begun := begun + 1) > BEGUN:
                continue
            for each in self.arguments:
                for alike in (True, False):  # another draw of the same level, and of any
                    level = levels[each.name] if alike else choice(generator, each.levels)
                    new = (call | {each.name: level.draw(generator)} for _ in range(20))
                    found += [call, *[facts for facts in new if facts != call and asked(facts)][:1]]
            for one, other in combinations(self.arguments, 2):  # a key of their sum or their product
                changed = call | {one.name: call[other.name], other.name: call[one.name]}
                found += [call, changed] if one.levels == other.levels and asked(changed) else []
        return [self.case(**facts) for facts in found]

    def _drawn(self, chosen: Combination, generator: torch.Generator) -> list[Case]:
        """The case of a combination, once for each output."""
        for _ in range(100):
            facts = {axis: level.draw(generator) for axis, level in chosen.items()}
            numbers = [facts[each.name] for each in self.arguments if isinstance(each, Number)]
            if self.tensors or self.asked(*numbers):
                break
        else:
            return []
        if facts.get("twice"):
            for one, other in self._unlike:
                facts[other] = facts[one]
        if between := facts.get("row_stride"):  # so many elements; rows that begin at multiples of 16 are special
            length = self._row_length(facts)
            stride = length + between
            padded = facts["padded"] = chosen["row_stride"] is ALIGNED
            # either the length is a multiple, or the stride may be
            whole = padded or length % 16 and integer(generator, 0, 1)
            stride = -(-stride // 16) * 16 if whole else stride + (stride % 16 == 0)
            overlapping = between < 0 and integer(generator, 1, max(1, length - 1))
            facts["row_stride"] = overlapping or (length if chosen["row_stride"] is ONLY_THE_LAST else stride)
        facts["leading"] = tuple(choice(generator, lengths) for lengths in LEADING[: facts.pop("rank", 1) - 1])
        layouts = [axis for axis in facts if axis.startswith("layout of ")]
        facts["layouts"] = {int(axis.removeprefix("layout of ")): facts.pop(axis) for axis in layouts}
        if "values" in chosen:
            facts["values"] = chosen["values"].name
        return [self.case(**facts, pick=pick) for pick in (range(len(self.outputs)) if self.outputs else (None,))]

    def case(
        self,
        dtype: torch.dtype | None = None,
        row_stride: int | None = None,
        values: str = "",
        leading: tuple[int, ...] = (),
        gradient: int | None = None,
        pick: int | None = None,
        layouts: Mapping[int, str] | None = None,
        padded: bool = False,
        twice: bool = False,
        **sizes,
    ) -> Case:
        """The case with these sizes, by the names of dimensions, and numbers. Its values are drawn by `make`.

        leading: lengths of the axes before the only dimension. row_stride: of the first tensor that may have one. Each
        further one has three elements more between its rows, so that no stride can stand for another. Where the first
        has none, the last one has some. padded: the rows of all begin at multiples of 16 elements. layouts: names of
        LAYOUTS, by the number of the tensor. twice: the two tensors of `alike` are one.
        """
        dtype, layouts = dtype or self.dtypes[0], layouts or {}
        kind = next((each for each in self.values if each.name == values), NORMAL)
        if not self.tensors:
            numbers = tuple(sizes[each.name] for each in self.arguments)
            return Case(self.named(*numbers), lambda generator: numbers)
        gap = row_stride - self._row_length(sizes) if row_stride else 0
        last = sum(each.row_stride for each in self.tensors) - 1 if row_stride else None

        def make(generator: torch.Generator) -> tuple:
            shapes = ((*leading, *(sizes[name] for name in each.shape)) for each in self.tensors)
            together = self.together or (lambda *_: tuple(kind.fill(shape, dtype, generator) for shape in shapes))
            drawn = enumerate(together(sizes, kind, dtype, generator))
            made, strided = [], 0
            for each in self.arguments:
                if isinstance(each, Number):
                    made.append(sizes[each.name])
                    continue
                number, x = next(drawn)
                x = x.to(each.dtype or dtype)
                between = gap + (16 if padded else 3) * strided if gap else 3 * (0 < strided == last)
                how = row_stride == 0, between, padded, generator
                made.append(_in_layout(x, layouts.get(number, BY_ROWS), *how) if each.row_stride else Strided(x))
                strided += each.row_stride
            if twice:
                one, other = self.alike
                made[other] = made[one]
            if gradient is not None:
                shape = tuple(sizes[name] for name in self.incoming)
                made.append(_incoming(shape, dtype, row_stride == 0, gap > 0 and gap + 3 * strided, generator))
            return tuple(made)

        shape = (*leading, *(sizes[each.name] for each in self.dimensions))
        turned = [f"{ORDINALS[i]} {layout}" for i, layout in sorted(layouts.items()) if layout != BY_ROWS]
        numbers = [each.name for each in self.arguments if isinstance(each, Number) and each.levels]
        more = [f"{each} = {sizes[each]:.6g}" for each in numbers] + turned + ["one tensor twice"] * twice
        more += [self.outputs[pick]] if pick is not None else []
        name = self._named(shape, dtype, row_stride, gradient, values, *more)
        about = self._about(shape, dtype, row_stride, kind) | ({Tag.STRIDED} if turned else set())
        return Case(name, make, about, pick, gradient)

    def _row_length(self, sizes: Mapping[str, int]) -> int:
        """Elements of a row of the first tensor that may have any row stride."""
        first = next(each for each in self.tensors if each.row_stride)
        return math.prod(sizes[name] for name in first.shape[1:])

    def _named(self, shape: tuple[int, ...], dtype: torch.dtype, row_stride: int | None, gradient, *more: str) -> str:
        shown = dtype_name(dtype) if dtype != self.dtypes[0] else ""
        size = "n = " * (len(shape) == 1) + " × ".join(map(_digits, shape))
        if len(self.dimensions) > 2:
            size = ", ".join(f"{each.name} = {_digits(n)}" for n, each in zip(shape, self.dimensions, strict=True))
        stride = "" if row_stride is None else f"row stride {_digits(row_stride)}"
        judged = "" if gradient is None else f"the gradient of {self.gradients[gradient]}"
        return ", ".join(filter(None, (shown, size, stride, *more, judged)))

    def _about(self, shape, dtype: torch.dtype, row_stride: int | None, kind: Values = NORMAL) -> frozenset[Tag]:
        rows, last = (1, math.prod(shape)) if self.any_rank or len(shape) == 1 else (shape[0], shape[-1])
        found = {
            Tag.EMPTY: math.prod(shape) == 0,
            Tag.SHORT: last < 64 or row_stride == 0,  # all rows are alike, and so are the patterns of their errors
            Tag.RAGGED: rows * (last % 64) != 0,
            Tag.MANY: rows > 60,
            Tag.WIDE: len(shape) == 2 and not self.any_rank and last > 1 << 14,
            Tag.STRIDED: row_stride is not None and rows > 1,
            Tag.HALF: dtype.itemsize == 2,
        }
        return frozenset(tag for tag, holds in found.items() if holds) | set(map(Tag, kind.about.split()))

    # -- sizes that an answer's own numbers ask for ----

    def beyond(
        self, bounds: Sequence[int], divisors: Sequence[int], reached: Mapping[str, int], generator
    ) -> list[Case]:
        """Cases in which one dimension is a bound that few cases have reached, or well beyond it; others are small.

        Of the bounds the largest that can be afforded, and one of the others: what begins at a size mostly goes on. And
        cases in which each dimension is an odd multiple of a divisor.
        """
        found: list[tuple[dict[str, int], str]] = []
        twice, turn = sorted({*bounds, *(2 * n for n in bounds)}), cycle(self.long)  # what is shared out has a rest
        for each, ends in product((each for each in self.dimensions if each.large), (twice, bounds)):
            small = {d.name: min(level.draw(generator) or 1 for level in d.sizes) for d in self.dimensions}
            small |= {d.name: integer(generator, 1, 2) for d in self.dimensions if d.large}
            least = small | {d.name: 1 for d in self.dimensions if d.large}
            longer = [{each.name: n if ends is bounds else odd(n + 2, n + n // 8)(generator)} for n in ends]
            longer = [more for more in longer if more[each.name] > reached.get(each.name, 0)]
            tried = ([small | more, least | more] for more in longer)
            tried = (next((sizes for sizes in both if self._affordable(sizes, each.name)), None) for both in tried)
            fit = [sizes for sizes in tried if sizes]
            found += [(sizes, kind) for sizes in fit[-1:] for kind in (self.long if ends is twice else [next(turn)])]
            found += [(choice(generator, fit[:-1]), next(turn))] if len(fit) > 1 else []
        for n in divisors:
            odds = odd(1, 5 if n < 100 else 1)
            sizes = {d.name: n * odds(generator) if d.large else d.sizes[0].draw(generator) for d in self.dimensions}
            found.append((sizes, self.long[0]))
        return [case for sizes, kind in found for case in self._of_sizes(sizes, kind, generator)]

    def _affordable(self, sizes: dict[str, int], long: str) -> bool:
        """Whether an ordinary case can have these sizes. Many rows are many programs, of a whole block each."""
        most = MOST_ROWS if long == self.large and len(self.dimensions) > 1 else MOST_LONG
        return sizes[long] <= most and self._most_elements(sizes, (long,)) <= MOST_IN_A_CASE

    def _of_sizes(self, sizes: dict[str, int], kind: str, generator: torch.Generator) -> list[Case]:
        """The cases of these sizes: of each output, and of each gradient."""
        facts = sizes | self._plain_numbers(generator) | {"values": kind}
        picks, gradients = range(len(self.outputs)) if self.outputs else (None,), (None, *self.gradients)
        dtypes = dict.fromkeys((self.dtypes[0], choice(generator, self.dtypes)))
        each = [(dtype, pick, gradient) for dtype in dtypes for pick in picks for gradient in gradients]
        return [self.case(dtype, pick=pick, gradient=gradient, **facts) for dtype, pick, gradient in each]

    def _plain_numbers(self, generator: torch.Generator) -> dict[str, object]:
        numbers = (each for each in self.arguments if isinstance(each, Number) and each.levels)
        return {each.name: each.levels[0].draw(generator) for each in numbers}

    def alike_in_part(self, generator: torch.Generator) -> list[Case]:
        """Cases that a key takes for one if it knows their sizes in part: two in which the sizes of the first two
        dimensions that may be large have changed places, and two in which the first of them has as many bits."""
        names = [each.name for each in self.dimensions if each.large][:2]
        if not names or not self.tensors:
            return []
        facts = {each.name: min((n for level in each.sizes if (n := level.draw(generator)) > 1), default=2)
                 for each in self.dimensions if each.name not in names[:1]}  # fmt: skip
        facts |= self._plain_numbers(generator) | {"pick": 0 if self.outputs else None}
        sizes = [{names[0]: n} for n in ALIKE if self._most_elements(facts | {names[0]: n}, ()) <= MUCH]
        if len(names) > 1:
            both = FEWER if self._most_elements(facts | dict(zip(names, EXCHANGED)), ()) > MUCH else EXCHANGED
            sizes += [dict(zip(names, each)) for each in (both, both[::-1])]
        return [self.case(**facts | each) for each in sizes]

    def overlapping(self, generator: torch.Generator) -> list[Case]:
        """A case in which the second tensor of `alike` may be a part of the first, or the first transposed."""
        facts = {each.name: each.sizes[0].draw(generator) for each in self.dimensions}
        if self.alike and self.tensors[0].any_strides:
            return [self.case(**dict.fromkeys(facts, EXCHANGED[0]), layouts={self.alike[1]: TRANSPOSED})]
        if self.alike and len(self._unlike) == 1:  # two vectors
            return [self.case(**facts | dict(zip(self._unlike[0], EXCHANGED[::-1])))]
        return []

    # -- sizes that no case can hold ---------------------------------------------------------------------

    def large_cases(self, generator: torch.Generator, bounds: Sequence[int] = ()) -> tuple[Case, ...]:
        """Cases with Large arguments: vectors; matrices that are tall, wide and neither; or one for each dimension.

        bounds: numbers that some sizes exceed.
        """
        if not self.tensors:
            many = _past(bounds, integer(generator, *PROGRAMS))
            each = (many, many // EVEN_PROGRAMS * EVEN_PROGRAMS) if self.large else ()
            return tuple(self._large({self.large: n}, generator) for n in each)
        if len(self.dimensions) == 1:
            vectors = _large_vectors(generator, self.any_rank, bounds)
            return tuple(self._large({self.large: math.prod(shape)}, generator, shape) for shape in vectors)
        names, alike = [each.name for each in self.dimensions], 0
        if self.large:
            (rows, length), *shapes = large_matrices(generator)
            shapes = [(_past(bounds, rows), length), *shapes]
            # Not the first: which of its many rows is which must show. Not the second: it is contiguous.
            alike = integer(generator, 2, 4)
            sizes = [{self.large: shape[0]} | dict(zip(names, shape)) for shape in shapes]
        else:
            sizes = self._large_sizes(generator, bounds)
        turn, made = integer(generator, 1, 6), []
        for i, each in enumerate(each | self.derived(each) for each in sizes):
            asked = (None, list(self.gradients)[(turn + i) % len(self.gradients)]) if self.gradients else (None,)
            dtype = self.dtypes[0 if i == 1 else (turn + i) % len(self.dtypes)]  # its tiles are largest; each in turn
            how = {"alike": 0 < i == alike, "dtype": dtype}
            made += [self._large(each, generator, gradient=gradient, **how) for gradient in asked]
        return tuple(made)

    def _large_sizes(self, generator: torch.Generator, bounds: Sequence[int]) -> list[dict[str, int]]:
        """Each dimension is large alone, where the others are small; two of them are in the last one."""
        found, large = [], [each for each in self.dimensions if each.large]
        growing = [each.name for each in large if len(each.large) > 1]
        alone = [((each.name,), choice(generator, (*each.large, *each.large[1:] * 4))) for each in large]
        pair = [(tuple(growing[:2]), BOTH)] if len(growing) > 1 else []  # those of the output, if it has two
        for large, ends in alone + pair:
            sizes = {
                d.name: integer(generator, 1, 8) if d.large else d.sizes[0].draw(generator) for d in self.dimensions
            }
            sizes |= {name: _spread_over(generator, *ends) for name in large}
            if len(large) == 1 and ends[0] > MOST_IN_A_ROW:
                sizes |= {name: _past(bounds, sizes[name]) for name in large}
            while self._most_elements(sizes, large) > MOST_ELEMENTS:
                sizes |= {name: sizes[name] // 2 for name in large}
            found.append(sizes)
        return found

    def _most_elements(self, sizes: dict[str, int], large: tuple[str, ...]) -> int:
        """Of one tensor. The output may have all dimensions that are large."""
        known = sizes | self.derived(sizes)
        return max(
            math.prod(known.get(name, 1) for name in names) for names in (large, *(each.shape for each in self.tensors))
        )

    def _large(
        self, sizes: dict, generator, shape: tuple[int, ...] = (), alike: bool = False, gradient=None, dtype=None
    ) -> Case:
        """shape: of all dimensions. alike: all rows are the same one, where a row stride of 0 is allowed.

        gradient: the number of the argument whose gradient is judged; None: the output is.
        """
        shape = shape or tuple(sizes[each.name] for each in self.dimensions) or (sizes[self.large],)
        dtype, rows = dtype or choice(generator, self.dtypes), self.large or self.rows
        first = next((each for each in self.tensors if each.row_stride), None)
        length = first and self._row_length(sizes)
        most = math.prod(shape) > NARROW_ENDS[-1]  # contiguous, because some take such a matrix for one long row
        gap = 0 if most or shape[0] >= MOST_IN_A_ROW else integer(generator, 0, 9)
        row_stride = first and (0 if alike else length + gap)

        def argument(each: TensorArgument | Number) -> Large | object:
            if isinstance(each, Number):
                return each.levels[0].draw(generator) if each.levels else sizes[each.name]
            axis = each.shape.index(rows) if rows in each.shape else None
            of_it = shape if each.any_rank else tuple(sizes[name] for name in each.shape)
            stride = row_stride and row_stride - length + math.prod(of_it[1:]) if each.row_stride else None
            return Large(of_it, each.dtype or dtype, stride, axis, each.span(sizes), each.whole)

        arguments = tuple(map(argument, self.arguments))
        if gradient is not None:
            incoming = tuple(sizes[name] for name in self.incoming)
            arguments += (Large(incoming, dtype if incoming else torch.float32),)
        pick = integer(generator, 0, len(self.outputs) - 1) if self.outputs else None
        name = self._named(shape, dtype, row_stride, gradient)
        return Case(name, lambda generator: arguments, self._about(shape, dtype, row_stride), pick, gradient)


ORDINALS = "first", "second", "third"


def _incoming(shape: tuple[int, ...], dtype: torch.dtype, equal: bool, gap: int, generator) -> Cotangent:
    """The gradient of an output of this shape. equal: all its numbers are one, with strides of 0, as after y.sum().

    Where the gap is odd, it is transposed in memory, as after y.t().
    """
    one = 0.5 + torch.rand((), generator=generator)
    if not shape:  # of a loss, often scaled: in float16 small gradients would be 0 otherwise
        return Cotangent(one * (1 << 15 if dtype == torch.float16 else choice(generator, (1, 64))))
    if equal:
        return Cotangent(one.to(dtype).expand(shape), (0,) * len(shape))
    values = torch.randn(shape, generator=generator).to(dtype)
    if gap % 2:
        return Cotangent(values, (1, shape[0] + gap))
    return Cotangent(values, Strided(values, shape[-1] + gap).stride if gap else None)


def _shifted(case: Case, place: int) -> Case:
    """The case with the first tensor, or the last one, at no multiple of 16 bytes, as x[1:] is. place: 0 or -1."""

    def make(generator: torch.Generator) -> tuple:
        made = case.make(generator)
        chosen = [a for a in made if isinstance(a, Strided)][place]
        shifted = replace(chosen, shift=1)
        return tuple(shifted if a is chosen else a for a in made)

    return replace(case, name=f"{case.name}, {'last' if place else 'first'} tensor not aligned", make=make)


def _in_layout(x: torch.Tensor, layout: str, *how) -> Strided:
    if layout == TRANSPOSED:
        made = _laid_out(x.t(), *how)
        return Strided(made.values.t(), strides=made.stride[::-1])
    if layout == EQUAL:
        made = _laid_out(x[:, :1].expand(x.shape).contiguous(), *how)
        return Strided(made.values, strides=(made.stride[0], 0))
    made = _laid_out(x, *how)
    return made if layout == BY_ROWS else Strided(made.values, strides=tuple(2 * step for step in made.stride))


def _laid_out(x: torch.Tensor, equal: bool, gap: int, padded: bool, generator: torch.Generator) -> Strided:
    """A tensor with so many elements between its rows; or, if they are equal, with a row stride of 0.

    padded: with some more, so that each row begins at a multiple of 16 elements.

    With three axes, the rows are those of the last two; or there are gaps
    between these, too; or the second axis is the outer one, as in a cache that is written token by token.
    """
    if equal:
        return Strided(x[integer(generator, 0, len(x) - 1)].expand(x.shape).contiguous() if len(x) else x, 0)
    if gap < 0 and x.ndim == 2 and x.numel():  # rows that overlap
        stride = max(1, x.shape[1] + gap)
        return Strided(x.contiguous().as_strided(x.shape, (stride, 1)).clone(), stride)
    if gap <= 0:
        return Strided(x)
    if x.ndim < 3 or gap % 3 == 0:
        stride = math.prod(x.shape[1:]) + gap
        return Strided(x, -(-stride // 16) * 16 if padded else stride)
    first, second, last = x.shape
    last += gap
    return Strided(x, strides=(second * last, last, 1) if gap % 3 == 1 else (last, first * last, 1))


def _digits(n: int) -> str:
    return f"{n:,}" if n >= 10_000 else str(n)


NARROW_ENDS = 1 << 15, 1 << 16, 1 << 24  # numbers of elements at which narrow types end; see box/inside/replay.py
AS_THEY_ARE = 10_000  # numbers of an answer that are sizes; there are other cases for smaller ones
PROGRAMS = 8_400_000, 9_900_000  # of an exercise with one for each element
EVEN_PROGRAMS = 1 << 12  # of which so many divide the number of programs
MOST_BLOCKS = 1 << 27  # elements: more blocks of 1024 than a grid's second axis has places
MOST_PAST = 1 << 23  # of a bound that an answer is written with
MOST_ELEMENTS = 1 << 27  # of all dimensions together
MOST_IN_A_CASE = 5_000_000  # elements of a tensor that is computed with
MOST_LONG, MOST_ROWS = 400_000, 6000  # of them along one dimension; and rows, of which each may be a program


def _spread_over(generator: torch.Generator, low: int, high: int) -> int:
    """A size from `low` to `high`, both included. Its logarithm is spread evenly."""
    return min(high, int(low * ((high + 1) / low) ** float(torch.rand((), generator=generator))))


def _past(bounds: Sequence[int], size: int) -> int:
    """A size that exceeds these bounds, if that is no more than a launch of so many programs takes."""
    return max([size, *(n + n // 8 for n in bounds if n <= MOST_PAST)])


def _large_vectors(generator: torch.Generator, any_rank: bool, bounds: Sequence[int]) -> list[tuple[int, ...]]:
    """One of 10⁴ to 10⁶ elements, one beyond 2²⁴, and one beyond MOST_BLOCKS. One is one more than whole blocks.

    bounds: numbers of the answer, ascending. The largest are sizes, too, for what begins or ends with them, and so are
    their sums with the smallest, which may be blocks.
    """
    small = int(10 ** (4 + 2 * float(torch.rand((), generator=generator))))
    middle = NARROW_ENDS[-1] + int(10 ** (4 + 3 * float(torch.rand((), generator=generator))))
    made, turn = [(middle // NARROW_ENDS[0] * NARROW_ENDS[0] + 1,)], integer(generator, 0, 1)
    for i, size in enumerate((small, integer(generator, MOST_BLOCKS, 160_000_000))):
        power = (1 << integer(generator, 1, 4), 1 << integer(generator, 5, 9))[i == turn]
        leading = choice(generator, (3, 5, 7)) if any_rank and integer(generator, 0, 1) else 1
        row = (size // leading // power | 1) * power
        made.append((leading, row) if leading > 1 else (row,))
    return made + [(n + more,) for n in bounds[-2:] if n >= AS_THEY_ARE for more in (0, *bounds[:2])]


def large_matrices(generator: torch.Generator) -> list[tuple[int, int]]:
    """More short rows than a grid's second axis has tiles of 32, thousands of rows of thousands, and long rows: of each
    octave from 2¹² to 2¹⁷, as an answer may take another way from some power of two on. Every third has one dtype: the
    long ones and those of which only addresses are looked at are apart.

    The first ones and the last ones are so many, or so long, that of some outputs only the addresses are looked at. The
    third ones have 107 blocks of 256, and 107 * (1 / 107) is less than 1, in 32 bits and in 64.
    """
    usual, last = _spread_over(generator, 2100, 4000), NARROW_ENDS[-1]
    return [
        (integer(generator, *MANY), integer(generator, 2, 4)),
        (integer(generator, last, 4 * last) // usual, usual),
        (integer(generator, 130, 300), 107 * 256 - integer(generator, 1, 7)),
        (integer(generator, 2, 20), 16 * integer(generator, 4_200, 4_700)),
        (integer(generator, 3, 8), integer(generator, 700_000, MOST_IN_A_ROW)),
        *((integer(generator, 3, 8), odd(1 << power, 2 << power)(generator)) for power in (15, 12, 13)),
    ]


def unfilled(*shape: int) -> Strided:
    """A tensor argument without values, for measuring time."""
    return Strided(torch.empty(shape, device="meta"))
