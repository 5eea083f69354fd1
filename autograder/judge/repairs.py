"""Whether a launch is to blame: a wrong answer's trace is replayed with one change in a launch.

Two arguments change places, one argument is another quantity of the call, or the grid has another order or size. If one
such change makes every case right, the message names it. Names of parameters decide between several, and against those
that would take from a parameter what it is named after: there the kernel is wrong, and the launch is right.

Source: the change that makes a failing test pass is the idea of Le Goues and others, "GenProg", 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from math import prod

import torch

from ..box.wire.answers import Input, Trace
from ..diagnosis import Observation, diagnose
from ..exercises.cases import Strided, Tag
from ..text import many
from ..verdict import Finding, Slug
from .trials import Drawn, Trials

MOST_CONFIRMED = 3  # changes of one kind that are tried on all cases
MOST_PROGRAMS = 512  # of all launches of the first call that is tried
SHARE = 0.1  # of the exercise's time, for one kind of changes
FROM_THE_LAUNCH = range(Slug.INPUT_MODIFIED.rank, Slug.READS_TOO_OFTEN.rank)  # names of what a launch can cause
TOO_FEW = {Slug.UNWRITTEN_OUTPUT, Slug.TAIL_WRONG, Slug.WRONG_PROGRAM_ID}  # names of what too few programs cause
TOO_MANY = {Slug.OUT_OF_BOUNDS_LOAD, Slug.OUT_OF_BOUNDS_STORE}


@dataclass(frozen=True)
class Quantity:
    """What a parameter can get: a tensor {"t": number} or a number. words: what a parameter for it is called."""

    value: object
    words: tuple[str, ...]
    label: str

    @property
    def told(self) -> str:
        if not isinstance(self.value, (int, float)):
            return self.label or "another value"
        return f"{self.value:,}" + f", which is {self.label}" * bool(self.label)


class Call:
    """One case with its trace: the quantities that are known in it, and what each parameter gets."""

    def __init__(self, trials: Trials, drawn: Drawn, trace: Trace):
        self.trials, self.drawn, self.trace = trials, drawn, trace
        self.launches = trace.launches
        self.known = [*self._tensors(), *self._sizes()]

    def given(self, number: int) -> dict[str, tuple[object, str]]:
        """The value and the type of each parameter of a launch that is no constant."""
        return {each.label: (each.value, each.kind) for each in self.launches[number].given}

    def got(self, value: object, near: str = "") -> Quantity:
        """A value as a quantity; among equal ones, the one that the name `near` fits best."""
        same = [each for each in self.known if each.value == value]
        return max(same, key=lambda each: fit(near, each), default=Quantity(value, (), "a buffer" * _is_tensor(value)))

    def _tensors(self) -> Iterator[Quantity]:
        names = [n for n, a in zip(self._parameters, self.drawn.arguments, strict=False) if isinstance(a, Strided)]
        inputs = [step for step in self.trace.steps if isinstance(step, Input)]
        for name, step in zip(names, inputs, strict=False):
            yield Quantity({"t": step.out[0]}, (name, "in", "input"), name)
        given = {v["t"]: v for i in range(len(self.launches)) for v, _ in self.given(i).values() if _is_tensor(v)}
        made = [value for t, value in given.items() if not any(t in step.out for step in inputs)]
        result = {"t": self.trace.result}
        for value in [result] if result in made else made if len(made) == 1 else []:
            yield Quantity(value, ("output", *self.trials.exercise.entry.split("_")), "the output")

    def _sizes(self) -> Iterator[Quantity]:
        """The lengths and strides of the tensors, and the numbers that the function gets."""
        inputs = self.trials.exercise.inputs
        declared = {} if inputs is None or inputs.any_rank else dict(zip(self._parameters, inputs.arguments))
        tensors = [(n, a.values.shape, a.stride) for n, a in zip(self._parameters, self.drawn.arguments, strict=False)
                   if isinstance(a, Strided)]  # fmt: skip
        output = self.drawn.expected.shape
        for name, shape, stride in [*tensors, ("output", output, torch.empty(output, device="meta").stride())]:
            dimensions = getattr(declared.get(name), "shape", ())
            for axis, length in enumerate(shape):
                words = (dimensions[axis],) if axis < len(dimensions) else ()
                yield Quantity(length, words, f"{name}.shape[{axis}]")
                words += ("row",) * (axis == len(shape) - 2) + ("column",) * (0 < axis == len(shape) - 1)
                words += ("in", "input") * (len(tensors) == 1 and name != "output")
                yield Quantity(stride[axis], (name, "stride", *words), f"{name}.stride({axis})")
            yield Quantity(shape.numel(), ("elements", "numel"), f"{name}.numel()")
        for name, value in zip(self._parameters, self.drawn.arguments, strict=False):
            if not isinstance(value, Strided):
                yield Quantity(value, (name,), name)

    def name_of(self, size: Quantity, number: int) -> str:
        """The parameter of a launch that gets a size, or the size's label."""
        names = [name for name, (value, _) in self.given(number).items() if value == size.value]
        best = max(names, key=lambda name: fit(name, size), default="")
        return best if best and (len(names) == 1 or fit(best, size)) else size.label

    @property
    def is_flat(self) -> bool:
        """Whether the elements of the output are in no rows."""
        inputs = self.trials.exercise.inputs
        return inputs is not None and inputs.any_rank or self.drawn.expected.ndim < 2

    @property
    def programs(self) -> int:
        return sum(launch.programs for launch in self.launches)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.trials.exercise.inputs.outputs if self.trials.exercise.inputs else ()

    @property
    def inputs(self) -> set[str]:
        return {label for label, each in zip(self._parameters, self.drawn.arguments) if isinstance(each, Strided)}

    @property
    def _parameters(self) -> tuple[str, ...]:
        return self.trials.exercise.parameters

    def changed(self, number: int, **fields) -> Call | None:
        """The same call with other fields in one launch; None if they are as they were."""
        before = self.launches[number]
        if (changed := replace(before, **fields)) == before:
            return None
        steps = tuple(changed if step is before else step for step in self.trace.steps)
        return Call(self.trials, self.drawn, replace(self.trace, steps=steps))

    def with_arguments(self, number: int, values: dict[str, object]) -> Call | None:
        launch = self.launches[number]
        given = tuple(replace(each, value=values.get(each.label, each.value)) for each in launch.given)
        return self.changed(number, given=given, args=launch.args | values)


def fit(name: str, quantity: Quantity) -> int:
    """How many words of a parameter's name belong to a quantity. Words with the same first three letters are alike."""
    words = name.removesuffix("_ptr").lower().split("_")
    return sum(any(a == b or len(a) > 2 and a[:3] == b[:3] for b in quantity.words) for a in words)


def gain(call: Call, name: str, old: object, new: object) -> int:
    """By how many words a new value of a parameter fits its name better."""
    return fit(name, call.got(new, name)) - fit(name, call.got(old, name))


def _is_tensor(value: object) -> bool:
    return isinstance(value, dict) and type(value.get("t")) is int


# -- changes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A change of a launch. `apply` makes it in a call, or gives None; `told`: what was wrong, and what to write.

    gain: by how many words the arguments then fit the names of their parameters better. by_name: nothing else is known.
    programs: of all launches, if their number changes.
    """

    apply: Callable[[Call], Call | None]
    told: Callable[[Call], tuple[str, str]]
    gain: int = 0
    by_name: bool = False
    programs: int = 0


def changes(call: Call, slug: Slug) -> Iterator[list[Change]]:
    """The changes of the launches of a call that may explain a finding, of one kind after the other.

    First those that fit the names best.
    """
    for kind in (_places, _others, _all_by_name, _orders) + (_counts,) * (slug in TOO_FEW | TOO_MANY):
        made = [each for number in range(len(call.launches)) for each in kind(call, number) if each.gain >= 0]
        made = [each for each in made if kind is not _counts or (each.programs > call.programs) == (slug in TOO_FEW)]
        yield sorted(made, key=lambda each: (-each.gain, each.programs))


def _places(call: Call, number: int) -> Iterator[Change]:
    """Two arguments change places. Those of two types cannot be tried: there both names must speak for it."""
    given = call.given(number)
    for a, b in combinations(given, 2):
        (x, type_of_x), (y, type_of_y) = given[a], given[b]
        gains = [gain(call, a, x, y), gain(call, b, y, x)]
        better = sum(gains)
        alike = type_of_x == type_of_y
        if x == y or not alike and min(gains) <= 0:
            continue

        def apply(call: Call, a=a, b=b) -> Call | None:
            given = call.given(number)
            if a not in given or b not in given or given[a][1] != given[b][1]:
                return None
            return call.with_arguments(number, {a: given[b][0], b: given[a][0]})

        def told(call: Call, a=a, b=b, better=better) -> tuple[str, str]:
            given = call.given(number)
            first, second = call.got(given[a][0], b), call.got(given[b][0], a)
            if not better and len(call.outputs) > 1 and not any(each.label in call.inputs for each in (first, second)):
                return (
                    f"{a} and {b} changed places: each holds what the other one should.",
                    f"return the outputs in the order {', '.join(call.outputs)}. If they are, exchange {a} and {b} in "
                    "the launch or in the kernel.",
                )
            return (
                f"{a} got {first.told}, and {b} got {second.told}: they changed places.",
                f"exchange the two in the launch of {_name(call, number)}: one argument for each parameter, in the "
                "order of the kernel's `def`." + f" Or exchange {a} and {b} in the kernel." * (not better),
            )

        yield Change(apply, told, better, by_name=not alike)


def _others(call: Call, number: int) -> Iterator[Change]:
    """An argument is another quantity of the call, the one that the name of its parameter says."""
    for name, (value, _) in call.given(number).items():
        for wanted in call.known:
            better = fit(name, wanted) - fit(name, call.got(value, name))
            likely = better > 0 or better == 0 and fit(name, wanted) > 1  # a stride in the place of another one
            if not likely or wanted.value == value or type(wanted.value) is not type(value):
                continue

            def apply(call: Call, name=name, label=wanted.label) -> Call | None:
                found = next((each for each in call.known if each.label == label), None)
                given = call.given(number)
                return call.with_arguments(number, {name: found.value}) if found and name in given else None

            def told(call: Call, name=name, label=wanted.label) -> tuple[str, str]:
                value, _ = call.given(number)[name]
                found = next(each for each in call.known if each.label == label)
                right = label if _is_tensor(value) else f"{found.value:,}, which is {label}"
                return (
                    f"{name} got {call.got(value).told}. With {right}, the results are right.",
                    f"pass {label} as {name} in the launch of {_name(call, number)}.",
                )

            yield Change(apply, told, better)


def _all_by_name(call: Call, number: int) -> Iterator[Change]:
    """Each argument is the quantity of the call that fits the name of its parameter best."""
    parameters = call.given(number).keys()

    def wanted(call: Call) -> dict[str, Quantity]:
        found = {}
        for name, (value, _) in call.given(number).items():
            alike = [each for each in call.known if type(each.value) is type(value)]
            best = max((fit(name, each) for each in alike), default=0)
            fitting = [each for each in alike if best > 1 and fit(name, each) == best]
            if fitting and value not in [each.value for each in fitting]:
                found[name] = fitting[0]
        return found

    def apply(call: Call) -> Call | None:
        if call.given(number).keys() != parameters:  # a number that is 1 is no argument, and cannot be exchanged
            return None
        return call.with_arguments(number, {name: each.value for name, each in wanted(call).items()})

    def told(call: Call) -> tuple[str, str]:
        given = call.given(number)
        got = "; ".join(f"{name} got {call.got(given[name][0]).told}" for name in wanted(call))
        right = ", ".join(f"{name}: {each.label}" for name, each in wanted(call).items())
        return (
            f"{got}. These are not the quantities that the names say.",
            f"pass in the launch of {_name(call, number)}, in the order of the kernel's `def`, {right}.",
        )

    if len(wanted(call)) > 1:
        yield Change(apply, told)


def _orders(call: Call, number: int) -> Iterator[Change]:
    """The numbers of the grid have another order."""
    for order in permutations(range(3)):

        def apply(call: Call, order=order) -> Call | None:
            return call.changed(number, grid=tuple(call.launches[number].grid[axis] for axis in order))

        def told(call: Call, order=order) -> tuple[str, str]:
            grid = call.launches[number].grid
            moved = [(axis, new) for new, axis in enumerate(order) if grid[axis] > 1 and axis != new]
            if sum(n > 1 for n in grid) == 1:
                (axis, new), *_ = moved
                return (
                    f"The grid is {_grid(grid)}: it counts programs along axis {axis}, and the kernel reads "
                    f"tl.program_id({new}), which is always 0.",
                    f"read tl.program_id(axis={axis}) in the kernel, or give the grid another order.",
                )
            return (
                f"The grid is {_grid(grid)}, and with {_grid([grid[axis] for axis in order])} the results are right.",
                "check the order of the grid: tl.program_id(0) counts along its first number, tl.program_id(1) along "
                "its second. Exchange the numbers, or the axes that the kernel reads.",
            )

        yield Change(apply, told)
    if sum(n > 1 for n in call.launches[number].grid) > 1:
        yield Change(
            lambda call: call.changed(number, grid=(prod(call.launches[number].grid), 1, 1)),
            lambda call: (
                f"The grid {_grid(call.launches[number].grid)} has several numbers, and the kernel asks only for the "
                "place along the first one. With all programs along it, the results are right.",
                "multiply the numbers of the grid into one, (a * b,). Or find the place of a program with "
                "tl.program_id(0) and tl.program_id(1).",
            ),
        )


def _counts(call: Call, number: int) -> Iterator[Change]:
    """The grid has another number of programs along one axis: as many as a tensor is long, or as that has blocks, or
    as a matrix has tiles."""
    constants = call.launches[number].constants
    blocks = [name for name, value in constants.items() if type(value) is int and value > 1]
    unfit = {"stride"} if call.is_flat else {"stride", "numel"}
    sizes = {each.label: each for each in call.known if type(each.value) is int and not unfit & set(each.words)}
    one = [((label, block),) for label in sizes for block in (*blocks, "")]
    along = [label for label in sizes if label.startswith("output.shape")]
    tiles = [((a, x), (b, y)) for a, b in combinations(along, 2) for x, y in product((*blocks, ""), repeat=2) if x or y]
    for axis, factors in product(range(3), one + tiles):
        named = all(call.name_of(sizes[label], number) != label for label, _ in factors)
        if _counted(call, number, factors) == 1 < call.launches[number].grid[axis]:
            continue  # one program for everything may hide what several do wrong

        def apply(call: Call, axis=axis, factors=factors) -> Call | None:
            grid = list(call.launches[number].grid)
            grid[axis] = _counted(call, number, factors)
            return call.changed(number, grid=tuple(grid))

        def told(call: Call, axis=axis, factors=factors) -> tuple[str, str]:
            grid = call.launches[number].grid
            enough = _counted(call, number, factors)
            written = " * ".join(
                f"triton.cdiv({name}, {block})" if block else name
                for name, block in ((call.name_of(_size(call, label), number), block) for label, block in factors)
            )
            along = f" along axis {axis}" if axis or max(grid[1:]) > 1 else ""
            rounds = ": it rounds up" * any(block for _, block in factors)
            loop = " Or let each program do several parts, in a loop." * (grid[axis] < enough)
            return (
                f"The grid {_grid(grid)} has {many(grid[axis], 'program', 'programs')}{along}, and with {enough:,} the "
                "results are right.",
                f"start {written} programs{along}{rounds}.{loop}",
            )

        if made := apply(call):
            yield Change(apply, told, int(named), programs=made.programs)


def _counted(call: Call, number: int, factors: tuple[tuple[str, str], ...]) -> int:
    """The product of some lengths, each in blocks of a constant of the launch or, without one, as it is."""
    constants = call.launches[number].constants
    return prod(-(-_size(call, label).value // (constants.get(block) or 1)) for label, block in factors)


def _size(call: Call, label: str) -> Quantity:
    return next(each for each in call.known if each.label == label)


def _name(call: Call, number: int) -> str:
    return call.launches[number].kernel


def _grid(grid: Sequence[int]) -> str:
    while len(grid) > 1 and grid[-1] == 1:
        grid = grid[:-1]
    return "(" + ", ".join(f"{n}" for n in grid) + ("," if len(grid) == 1 else "") + ")"


# -- the search ----------------------------------------------------------------------------------------------


def blames_the_launch(
    trials: Trials, observations: list[Observation], findings: list[Finding | None], finding: Finding
) -> Finding:
    """The finding, explained by the change of a launch that makes all cases right, if there is one."""
    if trials.on_gpu or finding.slug.rank not in FROM_THE_LAUNCH or not trials.judge.seconds_left:
        return finding
    found = {id(o.case): f and o.wrong is not None or o.trouble for o, f in zip(observations, findings, strict=True)}
    calls = [Call(trials, trials.cases[i], trace) for i, trace in trials.traces.items() if trace.launches]
    failing = [call for call in calls if found.get(id(call.drawn.case))]
    if not failing:
        return finding
    probe = min(failing, key=lambda call: (*_oddity(call), call.drawn.case.name != finding.case))
    calls = [call for call in calls if len(call.launches) == len(probe.launches)]
    for tried in changes(probe, finding.slug):
        if change := _found(trials, tried, probe, calls):
            spoken = next((call for call in calls if call.drawn.case.name == finding.case), probe)
            means, advice = change.told(spoken if change.by_name or change.apply(spoken) else probe)
            return replace(finding, means=means, advice=advice, second=None)
    return finding


def _oddity(call: Call) -> tuple:
    """More for a call that tells less: a number that is 1 is compiled into the program and is no argument.

    In float32, the input and the output have the type of what lies between them.
    """
    parameters = sum(len(call.given(number)) for number in range(len(call.launches)))
    return -parameters, Tag.HALF in call.drawn.case.about, Tag.SHORT in call.drawn.case.about


def _found(trials: Trials, tried: list[Change], probe: Call, calls: list[Call]) -> Change | None:
    """The first of some changes that makes the probe right, and then all calls that it applies to."""
    changed = {i: made for i, each in enumerate(tried) if not each.by_name and (made := each.apply(probe))}
    few = {i: call for i, call in changed.items() if call.programs <= max(MOST_PROGRAMS, probe.programs)}
    for i in sorted(_right(trials, few))[:MOST_CONFIRMED]:
        changed = {n: made for n, call in enumerate(calls) if (made := tried[i].apply(call))}
        if len(_right(trials, changed)) == len(changed):
            return tried[i]
    return next((each for each in tried if each.by_name), None)


def _right(trials: Trials, calls: dict[int, Call]) -> set[int]:
    """Those of some changed calls whose results are right. Calls that are alike are tried once."""
    first: dict[str, int] = {}
    same = {i: first.setdefault(f"{id(call.drawn)} {call.launches}", i) for i, call in calls.items()}
    found = right(trials, {i: (calls[i].drawn, calls[i].trace) for i in first.values()})
    return {i for i in calls if same[i] in found}


def right(trials: Trials, cases: dict, share: float = SHARE) -> set:
    """The keys of those cases (each with a trace) whose results are right."""
    return outcomes(trials, cases, share=share)[0]


def outcomes(trials: Trials, cases: dict, busy: Iterable = (), share: float = SHARE) -> tuple[set, set]:
    """The keys of those cases (each with a trace) whose results are right, and those that a change does not apply to.

    busy: keys of cases in which every program must store something: one program that does all hides what several do.
    """
    seen = trials.replay(cases, share) if cases else {}
    kept = {i for i, o in seen.items() if o.trouble and o.trouble.type == "Inapplicable"}
    seen = {i: o for i, o in seen.items() if i not in busy or not o.evidence.without_work}
    return {i for i, o in seen.items() if o.comparison and o.comparison.right and diagnose(o) is None}, kept
