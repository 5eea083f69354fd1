"""One call, one result: on every machine, and whatever was called before.

The cases show a host function one machine, and a few calls. What passes is planned again: on stand-ins for machines of
other kinds and sizes, and in one long run of calls: with shapes, strides and dtypes interleaved, and then of one form
only, so that a ring of buffers and a count of calls show. A call that launches other work there than in its case is
replayed like a case, and must give the right result, too.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from ..box import Outcome
from ..box.wire import Launch, PlanCase, PlanRequest, Report, Shown, Trace
from ..diagnosis import diagnose
from ..diagnosis.conduct import other_programs
from ..exercises.spec import Case, Exercise, Strided, Tag
from ..tensors import dtype_name
from ..text import many
from ..verdict import Finding, Slug
from .trials import Drawn, Plans, Reports, Trials, has_ended, trace_of, traces_of

# The long run is in the first, which is as the one of the cases. Each kind is there with few, with some and with many
# multiprocessors.
WORLDS = (
    Shown("cpu", 2), Shown("cuda", 132), Shown("cuda", 2, interpret=True), Shown("cpu", 37, True),
    Shown("hip", 304, True, card=2), Shown("cuda", 37, card=1), Shown("hip", 2, card=1), Shown("cuda", 307),
    Shown("hip", 304),
)  # fmt: skip
IN_TURN = 2, 4  # where calls follow one another that a key may take for one
# For large sizes. The first number is a prime: no share of the programs comes out even. The limits of the second hold
# for launch options, too. No other call is made there: the large ones come last.
LARGE_WORLD, OTHER_VENDOR = WORLDS[-2:]
ROUNDS = 2  # of the long run: the first fills what an answer keeps for a form, and the second uses it
AT_LAST = 80  # calls of one form, behind them: what shows later shows here
TRIED = 4  # cases on a card, of an answer that refuses the CPU
SMALL = 1 << 16  # elements; larger tensors are not in the long run
NOT_HERE = {"not-shown", "no-card"}  # kinds of errors for what only our stand-in for a card may lack
MOST_TOLD = 2  # launches that differ
KEY = (
    "look at what is kept from call to call: in a dictionary, by functools.cache, or by the key of autotune. The key "
    "must hold all that the launch follows from: dtype, shape, strides and device. Or keep nothing."
)
MOST_REPLAYED, MOST_GRIDS = 48, 8  # calls that launch other work, and those that differ in the grid alone


@dataclass(frozen=True)
class _Call:
    """drawn: the case. number: among the cases, or None for a form that no case has."""

    drawn: Drawn
    number: int | None
    world: int
    alone: bool = False
    calls_before: int = 0
    times: int = 1
    overlapping: tuple[int, int] | None = None  # two arguments, of which the second lies in the memory of the first

    @property
    def earlier(self) -> int:
        """Calls of the same function before this one."""
        return self.calls_before + self.times - 1

    @property
    def where(self) -> str:
        if self.overlapping:
            return "the second tensor in the memory of the first"
        before = many(self.earlier, "other call", "other calls")
        return f"after {before}" if self.earlier else f"shown as {WORLDS[self.world]}"

    @property
    def at(self) -> Drawn:
        """The case with a name that says where it is called."""
        case = replace(self.drawn.case, name=f"{self.drawn.case.name}, {self.where}")
        return replace(self.drawn, case=case)

    def request(self) -> PlanCase:
        case = self.drawn.planned(world=self.world, alone=self.alone, times=self.times)
        if not self.overlapping:
            return case
        first, second = self.overlapping
        arguments = [replace(a, same=first) if i == second else a for i, a in enumerate(case.arguments)]
        return replace(case, arguments=tuple(arguments))


def inconsistency(trials: Trials, further: Sequence[Drawn] = ()) -> tuple[Finding | None, Plans]:
    """What is wrong with a right answer on another machine, or after other calls.

    further: calls that the same process plans in the end. Returns their plans, too: of a launch that only the other
    vendor's GPUs refuse, that one.
    """
    calls = _calls(trials)
    reports = _planned(trials, calls, further)
    large = {i - len(calls): each for i, each in reports.items() if i >= len(calls)}
    refused = {i - len(further): each for i, each in large.items() if _error(each) == "launch-option"}
    found = _found(trials, calls, reports)
    if any(_error(each) in NOT_HERE for each in large.values()):  # then on this machine, where nothing stands in
        large = trials.plan([trials.source], further)
    return found, {further[i]: refused.get(i, each) for i, each in large.items() if i < len(further)}


def _found(trials: Trials, calls: list[_Call], reports: Reports) -> Finding | None:
    alone = {id(call.drawn): reports[i] for i, call in enumerate(calls) if call.alone and i in reports}
    differing: dict[tuple, tuple[_Call, Trace, Trace]] = {}
    for i, call in enumerate(calls):
        if (report := reports.get(i)) is None:
            continue
        usual = trace_of(alone.get(id(call.drawn))) if call.number is None else trials.traces.get(call.number)
        trace = trace_of(report)
        if trace is not None and (found := _idle(trials, call, trace)):
            return found
        if not has_ended(report) and (usual is None or trace == usual):
            continue  # this form is refused, or nothing differs
        if trace is not None:
            differing.setdefault((id(call.drawn), str(trace)), (call, usual, trace))
        elif WORLDS[call.world].device != "cpu" and _error(report) in NOT_HERE:
            trials.unjudged.setdefault("what it asks of a GPU is not known here", call.at.case.name)
        else:
            return _explained(diagnose(trials.unplanned(call.at, report, True)), call, "")
    trials.elsewhere = [trace for _, _, trace in differing.values()]
    return _replayed(trials, calls, list(differing.values()))


def _idle(trials: Trials, call: _Call, trace: Trace) -> Finding | None:
    """Another number of programs than the exercise asks for on the GPU that is shown."""
    shown = WORLDS[call.world]
    if call.number is None or shown.device == "cpu":
        return None
    values = [a.values if isinstance(a, Strided) else a for a in call.drawn.arguments]
    started = [launch.programs for launch in trace.launches]
    found = other_programs(trials.exercise, values, started, multiprocessors=shown.multiprocessors)
    return found and replace(found, case=call.at.case.name)


def only_for_cards(trials: Trials, observations: list) -> Finding | None:
    """The finding about a function that raises an error for each tensor of the CPU, and works on tensors of a card."""
    troubles = [o.trouble for o in observations]
    if trials.on_gpu or trials.traces or not all(t and t.kind == "exception" for t in troubles):
        return None
    calls = [_Call(drawn, i, 1) for i, drawn in enumerate(trials.cases[:TRIED])]
    if not any(map(trace_of, _planned(trials, calls).values())):
        return None
    trouble = troubles[0]
    return Finding(
        "runtime-error",
        f"{trouble.type}{': ' * bool(trouble.message)}{trouble.message[:300]} ({observations[0].case.name}).",
        "This machine has no GPU: here the function gets tensors of the CPU, and it refuses them. It was tried on a "
        "stand-in for a GPU, and accepts its tensors.",
        "leave out the test for a GPU, or compare the devices of the tensors with one another.",
        trouble.line,
        trouble.code,
    )


def kept(trials: Trials, finding: Finding) -> Finding:
    """The finding about a case; if the call of this case alone is right, what differs there. Where that is the launch,
    what is kept of an earlier call is the mistake."""
    if (number := trials.number(finding.case)) is None:
        return finding
    call, trace = _Call(trials.cases[number], number, 0, alone=True, calls_before=number), trials.traces[number]
    usual = trace_of(_planned(trials, [call]).get(0))
    seen = trials.replay({0: (call.drawn, usual)}) if usual not in (None, trace) else {}
    if not seen or diagnose(seen[0]):
        return finding
    return _explained(finding, call, _difference(usual, trace))


def with_the_line_of_nan(trials: Trials, finding: Finding) -> Finding:
    """The finding of a NaN. In bfloat16 it has no room for a line: the same numbers in float32 say where it is made."""
    number = trials.number(finding.case)
    if finding.slug != Slug.NAN or finding.line or number is None or torch.float32 not in trials.exercise.bounds:
        return finding
    if trials.cases[number].dtype == torch.float32:  # then there was room for the line, and it is not known
        return finding
    case = trials.cases[number].case
    drawn = trials.drawn(replace(case, make=partial(_changed, case, torch.float32, 0)), number)
    traces = traces_of(trials.plan([trials.source], [drawn]))
    seen = trials.replay({i: (drawn, trace) for i, trace in traces.items()})
    wide = diagnose(seen[0]) if seen else None
    if wide is None or wide.slug != Slug.NAN or not wide.line:
        return finding
    return replace(finding, line=wide.line, means=wide.means, advice=wide.advice)


def _planned(trials: Trials, calls: list[_Call], further: Sequence[Drawn] = ()) -> Reports:
    last = (each.planned(world=WORLDS.index(shown)) for shown in (LARGE_WORLD, OTHER_VENDOR) for each in further)
    requests = (*(call.request() for call in calls), *last)
    return trials.ask(PlanRequest((trials.source,), trials.exercise.entry, requests, WORLDS))


def _error(report: Report | Outcome) -> str:
    """The kind of error of a plan; "" if it has none, or if its process ended."""
    return report.error.kind if isinstance(report, Report) and report.error else ""


def _replayed(trials: Trials, calls: list[_Call], differing: list[tuple[_Call, Trace, Trace]]) -> Finding | None:
    """Replays the calls that launch other work than in their case."""
    grids = [each for each in differing if without_grids(each[1]) == without_grids(each[2])]
    others = [each for each in differing if each not in grids]
    grids.sort(key=lambda each: -each[0].drawn.expected.numel())
    others.sort(key=lambda each: (not each[0].drawn.expected.numel(), -each[0].times))
    made = [each for each in others if each[0].number is None]  # to show what is kept by a part of a form
    others = [each for each in others if each[0].number is not None]
    apart = -(-len(others) // MOST_REPLAYED) or 1  # of all parts of the run: a harmless difference hides no other one
    chosen = made + others[::apart] + grids[:MOST_GRIDS]
    seen = trials.replay({i: (call.at, trace) for i, (call, _, trace) in enumerate(chosen)})
    for i, (call, usual, trace) in enumerate(chosen):
        if i in seen and (found := diagnose(seen[i])):
            call, usual = _blamed(trials, calls, call, usual, trace)
            return _explained(replace(found, case=call.at.case.name), call, _difference(usual, trace))
    return None


def _blamed(trials: Trials, calls: list[_Call], call: _Call, usual: Trace, trace: Trace) -> tuple[_Call, Trace]:
    """The call, and the trace that it should have. The machine is the cause, or the earlier calls there: then the call
    has another trace where it is the only one."""
    if call.overlapping or not call.world:
        return call, usual
    only = trace_of(_planned(trials, [replace(call, alone=True)]).get(0))
    if only is None or only == trace:
        return replace(call, calls_before=0), usual
    return replace(call, calls_before=sum(each.world == call.world for each in calls[: calls.index(call)])), only


def _explained(finding: Finding | None, call: _Call, difference: str) -> Finding | None:
    if finding is None:
        return None
    where = "alone" if call.earlier else "on the machine of the other cases"
    where = "with tensors that share no memory" if call.overlapping else where
    same = f"The same call {where} is right."
    if call.earlier and difference and not call.overlapping:  # whatever the kernel does then, the cause lies elsewhere
        means = f"{same} {difference} So the function keeps something of an earlier call."
        return replace(finding, means=means, advice=KEY, second=None)
    return replace(finding, means=" ".join(filter(None, [same, difference, finding.means])))


def _calls(trials: Trials) -> list[_Call]:
    """The long run, with forms that no case has, and then each case once on each kind of device."""
    cases = [(drawn, number) for number, drawn in enumerate(trials.cases) if number in trials.traces]
    shuffle, elsewhere = random.Random(trials.seed), []
    longest = max((drawn for drawn, _ in cases), key=lambda drawn: drawn.parts, default=None)
    last = WORLDS.index(LARGE_WORLD)
    for device in dict.fromkeys(shown.device for shown in WORLDS):
        worlds = [number for number, shown in enumerate(WORLDS[:-1]) if number and shown.device == device]
        mixed = zip(shuffle.sample(cases, len(cases)), itertools.cycle(worlds))
        elsewhere += [
            _Call(drawn, number, last if drawn is longest and last in worlds else world)
            for (drawn, number), world in mixed
        ]
    elsewhere.sort(key=lambda call: call.world)
    generator, inputs = torch.Generator().manual_seed(trials.seed), trials.exercise.inputs
    others, both = other_forms(trials.exercise, trials.cases), inputs.alike_in_part(generator) if inputs else []
    made = [trials.drawn(case, 700 + i) for i, case in enumerate([*others, *both])]
    for world in IN_TURN:  # with new functions, one after the other, and the other way round
        both = made[len(others) :][:: 1 if world == IN_TURN[0] else -1]
        before = sum(call.world == world for call in elsewhere)
        elsewhere += [_Call(drawn, None, world, calls_before=before + i) for i, drawn in enumerate(both)]
    for case in inputs.overlapping(generator) if inputs else []:
        made.append(trials.drawn(case, 790))
        elsewhere.append(_Call(made[-1], None, IN_TURN[0], overlapping=inputs.alike))
    forms = [each for each in cases if each[0].expected.numel() <= SMALL] + [(drawn, None) for drawn in made]
    long = [(*each, round) for round in range(ROUNDS) for each in shuffle.sample(forms, len(forms))]
    # A call without elements shows little: none is the first or the last one.
    long.sort(key=lambda each: (each[2], each[2] == bool(each[0].expected.numel())))
    alone = [_Call(drawn, None, 0, alone=True) for drawn in made]
    # In the first round twice in a row: what is kept for few calls is gone when a form comes again.
    run = [_Call(drawn, n, 0, calls_before=i, times=2 - round) for i, (drawn, n, round) in enumerate(long)]
    return alone + run + [replace(each, calls_before=len(run), times=AT_LAST) for each in run[-1:]] + elsewhere


def other_forms(exercise: Exercise, cases: list[Drawn]) -> list[Case]:
    """The first ordinary case; in other dtypes; and with other strides.

    Each differs from the first in one of these: what is kept for a form and forgets one of them shows. For shapes see
    `Inputs.alike_in_part`.
    """
    unfit = {Tag.SHORT, Tag.EMPTY, Tag.WIDE, Tag.MANY, Tag.STRIDED}
    fit = (each for each in cases if each.tensors and each.expected.numel() > 64 and not each.case.about & unfit)
    base = next(fit, None)
    if base is None:
        return []
    shapes = {tuple(a.values.shape) for a in base.tensors}
    (shape, *others) = shapes
    dtypes = list(exercise.bounds) if exercise.inputs else [None]  # where all tensors have one dtype
    is_matrix = not others and len(shape) == 2
    made = []
    for dtype, more in [*((each, 0) for each in dtypes), *[(dtypes[0], 3)] * is_matrix]:
        size, kind = " × ".join(map(str, shape)), dtype_name(dtype) if dtype else ""
        name = ", ".join(filter(None, [size, kind, f"row stride + {more}" * (more > 0)]))
        half = {Tag.HALF} if dtype and dtype.itemsize == 2 else set()
        make = partial(_changed, base.case, dtype, more)
        made.append(replace(base.case, name=name, make=make, about=base.case.about | {Tag.AGAIN} | half))
    return made


def _changed(case: Case, dtype: torch.dtype | None, more: int, generator: torch.Generator) -> tuple:
    """The arguments of a case in another dtype, with rows that are further apart."""
    made = []
    for argument in case.make(generator):
        if isinstance(argument, Strided):
            values = argument.values
            values = values.to(dtype) if dtype and values.is_floating_point() else values
            argument = Strided(values, values.shape[1] + more if more else None)
        made.append(argument)
    return tuple(made)


def without_grids(trace: Trace) -> list:
    return [replace(step, grid=()) if isinstance(step, Launch) else step for step in trace.steps]


def _difference(usual: Trace, trace: Trace) -> str:
    """What differs between two traces of one call, in words."""
    before, now = usual.launches, trace.launches
    names = [[launch.kernel for launch in each] for each in (before, now)]
    if names[0] != names[1]:
        first, then = (", ".join(each) or "no kernel" for each in names)
        return f"There it launches {first}; here {then}."
    differ = ((one.kernel, _of_a_launch(one, other)) for one, other in zip(before, now))
    if said := [f"There the launch of {kernel} {how}." for kernel, how in differ if how]:
        return " ".join(said[:MOST_TOLD])
    return "What torch does before or after the launch differs."


def _of_a_launch(one: Launch, other: Launch) -> str:
    """How two launches of one kernel differ; "" if they do not."""
    for name in one.args:
        passed = (each.args.get(name) for each in (one, other))
        value, new = (each.get("text", each) if isinstance(each, dict) else each for each in passed)
        if new != value:
            given = isinstance(value, dict) or isinstance(new, dict)
            return f"gets another tensor as {name} than here" if given else f"has {name} = {value}; here it is {new}"
    if one.options != other.options:
        return f"has the options {one.options}; here {other.options}"
    if one.grid != other.grid:
        return f"has the grid {list(one.grid)}; here {list(other.grid)}"
    return "runs another program than here" if one.program != other.program else ""
