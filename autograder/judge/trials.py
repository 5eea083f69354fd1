"""The cases of one answer that takes tensors: drawn, planned on decoys, replayed on the real inputs, observed."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..box import Outcome, wire
from ..diagnosis import Observation, diagnose
from ..diagnosis.conduct import other_programs
from ..diagnosis.observation import Comparison
from ..exercises.design import TensorArgument
from ..exercises.masks import far_places, far_windows
from ..exercises.spec import Bound, Case, Cotangent, Exercise, Large, Strided, Tag
from ..tensors import dtype_name, seeded
from ..verdict import CaseResult, Finding, Slug, Verdict, quoted

MAX_CONFIGURATIONS = 32  # of a space: what is more is not tried
MAX_LISTS, MAX_TYPES = 4, 64  # of the types of parameters of an answer; they travel in one small message
TYPES = {"*i8", "i1", "fp16", "bf16", "fp32", "fp64"} | {f"{s}{n}" for s in "iu" for n in (8, 16, 32, 64)}
MAX_JOBS = 4  # that replay the cases of an answer
SHARE = 0.1  # of the exercise's time, for a replay of other sources
EVEN = 8  # what an even size is a multiple of
MOST_AGAIN = 48  # cases of even sizes in other configurations
MAX_VARIED = 10_000  # elements of the case whose plan has the programs of other constants: it may be replayed again
# Of calls at large sizes.
MOST_COMPARED = 1 << 22  # elements of the rows that are compared
MOST_SHARED = 1 << 23  # elements that every row follows from
MOST_NEEDED = 1 << 18  # elements that one row follows from
TOO_FEW = "Smaller inputs are right. The launch, or a loop of the kernel, ends too early for this size."
GROW = (
    "let the grid grow with the size, as triton.cdiv(n, BLOCK_SIZE) does, or let each program take as many blocks as "
    "there are. Look at each number that is chosen by the size."
)
PRIMES = 2, 3, 5, 7, 11, 13, 17, 19
FEW_CASES = 4  # cases; one of them may be about something else
OUR_LIMITS = {Slug.TIMEOUT, Slug.OUT_OF_MEMORY}  # for sizes that we chose
# Kinds of Trouble of a plan that may come from our limits. And those that are the answer's where kernels run.
OUR_KINDS = {"not-replayable"}
IN_THE_KERNEL = {"fault", "false-promise", "device-assert"}


@dataclass(eq=False)
class Drawn:
    """A call: a case with its arguments, and the expected output, where it is known before."""

    case: Case
    arguments: tuple
    shape: tuple[int, ...] | None  # of a right output; None: unknown
    dtype: torch.dtype  # of a right output
    expected: torch.Tensor | None = None
    poison: str = "nan"
    configuration: int = 0  # of autotuned kernels, see PlanCase
    computes: int = 0  # the most elements of a tensor that the host function may compute with
    variants: bool = False  # whether its plan has the programs with other values of autotuned constants

    @property
    def tensors(self) -> list[Strided | Large]:
        return [a for a in self.arguments if isinstance(a, (Strided, Large))]

    @property
    def parts(self) -> float:
        """A measure of how many parts a sum is split into: how long it is, for each of the rows that share a card."""
        rows = math.prod(self.shape[:1])
        return sum(a.values.numel() for a in self.tensors) / max(self.expected.numel(), 1) / max(rows, 1)

    @functools.cached_property
    def largest(self) -> float:
        """The largest finite number of the tensors, without its sign."""
        numbers = [a.values for a in self.tensors if a.values.is_floating_point() and a.values.numel()]
        return max((float(x.nan_to_num(0.0, 0.0, 0.0).abs().max()) for x in numbers), default=0.0)

    def planned(self, source: int = 0, **where) -> wire.PlanCase:
        """A plan for the box. where: the other fields of PlanCase."""
        return wire.PlanCase(
            without_values(self.arguments), self.configuration, source, pick=self.case.pick,
            gradient=self.case.gradient, computes=self.computes, variants=self.variants, **where,
        )  # fmt: skip


Reports = dict[int, wire.Report | Outcome]  # by the number of a call
Plans = dict[Drawn, wire.Report | Outcome]


def without_values(arguments: tuple) -> tuple:
    """The arguments without their values, Decoys and Numbers: what the planning process gets to know."""
    first: dict[int, int] = {}
    made = []
    for i, a in enumerate(arguments):
        same = first.setdefault(id(a), i)
        if isinstance(a, Large):
            a = wire.Decoy(a.shape, a.stride, dtype_name(a.dtype))
        elif isinstance(a, Strided):
            before = same if same < i else None
            a = wire.Decoy(tuple(a.values.shape), a.stride, dtype_name(a.values.dtype), before, a.shift)
        made.append(a)
    return tuple(made)


def verdict_of(judgement, finding: Finding | None, cases: Iterable[CaseResult], **more) -> Verdict:
    """The verdict of one of the three ways of judging. more: other fields."""
    exercise, passed = judgement.exercise, finding is None
    known = {"score": exercise.points * passed, "points": exercise.points, "backend": judgement.judge.backend}
    finding = finding and quoted(finding, judgement.source)
    return Verdict(exercise.name, passed, **known | more, finding=finding, cases=tuple(cases))


def has_ended(report: wire.Report | Outcome) -> bool:
    """Whether the process ended, used up its time or memory, or said what nobody can read.

    Nothing is known of its later cases then, and they may have been wrong. A plan runs no kernel: those of right
    answers take less than a tenth of their time.
    """
    return isinstance(report, Outcome) or bool(report.error) and report.error.kind == "garbled"


def ended(report: wire.Report | Outcome, stage: str = "replay") -> dict:
    """The fields of an Observation of a case without a result."""
    if isinstance(report, Outcome):
        return {"stage": stage, "exceeded": report.exceeded, "death": report.death}
    return {"stage": stage, "trouble": report.error or wire.Trouble("garbled", message="no trace, and no result")}


class Trials:
    """What an answer does with the cases of its exercise. `traces` are those of the cases that could be planned.

    programs: those that any trace names, by digest. The judge only carries them.
    """

    planner = wire.PlanRequest

    def __init__(self, judge, exercise: Exercise, source: str, seed: int):
        self.judge, self.exercise, self.source, self.seed = judge, exercise, source, seed
        self.on_gpu = judge.backend != "interpreter"
        self.traces: dict[int, wire.Trace] = {}
        self.elsewhere: list[wire.Trace] = []  # traces of calls that launch other work on another machine
        self.programs: dict[str, str] = {}
        self.unjudged: dict[str, str] = {}  # by the reason: the first call that could not be judged
        # What plans found, by sources: one may not speak for another.
        self.known: dict[tuple[str, ...], tuple[wire.Found, ...]] = {}
        self.cases = self.draw()

    def draw(self) -> list[Drawn]:
        """The calls of all cases."""
        cases = self.exercise.cases_of(torch.Generator().manual_seed(self.seed), self.on_gpu)
        made = [self.drawn(case, i) for i, case in enumerate(cases)]
        by_size = sorted(made, key=lambda drawn: -drawn.expected.numel())
        for number, drawn in enumerate(by_size):
            drawn.configuration = number  # so the large cases have different ones
        for varied in [drawn for drawn in by_size if 1 < drawn.expected.numel() <= MAX_VARIED][:1]:
            varied.variants = True
        return made

    def run(self, *request, **how) -> Outcome:
        """Runs one job, see Judge.run."""
        return self.judge.run(self.exercise, *request, **how)

    def ask(self, request: wire.PlanRequest) -> Reports:
        """Of a request for plans: by case, its report, or, for the case that ended the process, how it ended."""
        request = replace(request, known=self.known.get(request.sources, ()))
        outcome = self.run(request)
        for report in outcome.reports:
            if report.found:
                self.known[request.sources] = (*self.known.get(request.sources, ()), *report.found)
        plans = outcome.by_case(len(request.cases))
        for report in plans.values():
            self.programs |= report.programs if isinstance(report, wire.Report) else {}
        return plans

    @property
    def doubt(self) -> str:
        """What is said beside a right answer: which calls could not be judged, and why."""
        return " ".join(f"One call could not be judged ({call}): {why}." for why, call in self.unjudged.items())

    def replay_once(self, cases: dict, **how) -> tuple[dict, bool]:
        """What one process saw of `cases`, a case with its trace each, in their order.

        And whether it used too much time or memory. how: see Judge.run.
        """
        packer, order = wire.Packer(), list(cases)
        described = tuple(
            wire.ReplayCase(
                trace=trace,
                inputs=tuple(packer.tensor(a.values, a.stride, a.shift) for a in drawn.tensors),
                slot=packer.slot(math.prod(drawn.shape) * drawn.dtype.itemsize),
                poison=drawn.poison,
                computes=drawn.computes,
            )
            for drawn, trace in cases.values()
        )
        programs = named(self.programs, (trace for _, trace in cases.values()))
        request = wire.ProgramRequest("replay", self.source, described, programs)
        outcome = self.run(request, packer.tensors, packer.output_size, **how)
        reports = sorted(outcome.by_case(len(order)).items())
        seen = {
            order[i]: self.seen(*cases[order[i]], report, outcome.output, described[i].slot) for i, report in reports
        }
        return seen, bool(outcome.exceeded)

    def drawn(self, case: Case, number: int, **how) -> Drawn:
        """A case with arguments. number: another one for each case. how: other fields of Drawn."""
        generator = torch.Generator().manual_seed(self.seed + number)
        made = case.make(generator)
        arguments = tuple(Strided(a.values, strides=a.strides) if isinstance(a, Cotangent) else a for a in made)
        values = values_of(arguments)
        rows = [v.shape[0] or 1 for v in values if isinstance(v, torch.Tensor) and v.ndim and self.exercise.computes]
        dtype = values[case.gradient].dtype if case.gradient is not None else self.exercise.output_dtype
        dtype = dtype or next(value.dtype for value in values if isinstance(value, torch.Tensor))
        expected = self.exercise.expected(case, values)
        return Drawn(case, arguments, expected.shape, dtype, expected, computes=max(rows, default=0), **how)

    def observe(self) -> list[Observation]:
        """Plans every case, replays those that could be planned, and says what was seen in each."""
        plans = self.plan([self.source], self.cases)
        if more := self._in_other_configurations(traces_of(plans)):
            plans |= {len(self.cases) + i: plan for i, plan in self.plan([self.source], more).items()}
            self.cases += more
        self.traces = replayable = traces_of(plans)
        cases = {i: (self.cases[i], trace) for i, trace in replayable.items()}
        seen = self._replay_twice(cases) if self.on_gpu else self.replay(cases)
        # a case that was planned and not reached is no case: an earlier one used up the time
        order = [i for i in range(len(self.cases)) if i in seen or i in plans.keys() - replayable.keys()]
        launches = any(isinstance(p, wire.Report) and p.trace and p.trace.recorded for p in plans.values())
        return [seen[i] if i in seen else self.unplanned(self.cases[i], plans[i], launches) for i in order]

    def plan(self, sources: list[str], cases: Sequence[Drawn], of: list[int] | None = None) -> Reports:
        """As `ask`. of: for each case, the number of the source that it calls."""
        numbers = of or [0] * len(cases)
        described = tuple(d.planned(n) for d, n in zip(cases, numbers, strict=True))
        return self.ask(self.planner(tuple(sources), self.exercise.entry, described))

    def _in_other_configurations(self, traces: dict[int, wire.Trace]) -> list[Drawn]:
        """The largest ragged case again, in each configuration of an autotuner that no large case was planned in.

        And a case of each kind of even sizes: a configuration may have a larger block than the size is a multiple of.
        """
        tuned = {i: [launch.tuned for launch in trace.tuned] for i, trace in traces.items()}
        sizes = {i: self.cases[i].expected.numel() for i in traces if Tag.RAGGED in self.cases[i].case.about}
        largest = max(sizes, key=sizes.get, default=None)
        if largest is None:
            return []
        spaces = [len(each.space) for found in tuned.values() for each in found]
        count = min(max(spaces, default=0), MAX_CONFIGURATIONS)
        large = [i for i in traces if 2 * self.cases[i].expected.numel() > sizes[largest]]
        wanted = {largest: {each.choice for i in large for each in tuned[i]}}
        kinds = {kind: i for i in traces if (kind := _evenness(self.cases[i])) and tuned[i]}
        wanted |= {i: {each.choice for each in tuned[i]} for i in [*kinds.values()][: MOST_AGAIN // max(count, 1)]}
        return [
            self.drawn(replace(case, name=f"{case.name}, configuration {c}"), 600 + count * k + c, configuration=c)
            for k, (i, seen) in enumerate(wanted.items()) for case in [self.cases[i].case]
            for c in range(count) if c not in seen
        ]  # fmt: skip

    def number(self, case: str) -> int | None:
        """Of the planned case with this name; None if there is none."""
        return next((i for i in self.traces if self.cases[i].case.name == case), None)

    def unplanned(self, drawn: Drawn, planned: wire.Report | Outcome, launches: bool) -> Observation:
        """What was seen of a case whose plan has no trace. launches: whether any case launched a kernel."""
        seen = ended(planned, "plan")
        if isinstance(planned, wire.Report) and not planned.error:
            kind = planned.trace and planned.trace.returned or "nothing"
            seen["trouble"] = wire.Trouble("returned", construct="None" if kind == "NoneType" else kind)
            if kind == "NoneType" and not launches:
                message = f"{self.exercise.entry} returns None and launches no kernel."
                seen["trouble"] = wire.Trouble("exception", "NotImplementedError", message)
        return self._observation(drawn, **seen)

    def replay(self, cases: dict, share: float = 1.0, group: Callable | None = None) -> dict:
        """What the kernels did on the real inputs, by the keys of `cases` (a case with its trace each).

        A case that kills its process does not take the others along, except if it used up the time. group: of a key;
        where it is given, a case takes those of its group along, and no other.
        """
        seen, waiting = {}, dict(cases)
        for _ in range(len(set(map(group, cases))) if group else MAX_JOBS):
            if not waiting or group and not self.judge.seconds_left:
                break
            reported, exceeded = self.replay_once(waiting, share=share)
            seen |= reported
            if not reported or exceeded and not group:
                break
            waiting = {key: case for key, case in waiting.items() if key not in seen}
            if group:
                last = group(list(reported)[-1])  # its process ended here, or it is the last one
                waiting = {key: case for key, case in waiting.items() if group(key) != last}
        return seen

    def right_sources(self, sources: list[str], drawn: Drawn) -> list[str]:
        """Those of some sources whose result is right in this case."""
        traces = traces_of(self.plan(sources, [drawn] * len(sources), [*range(len(sources))])) if sources else {}
        seen = self.replay({n: (drawn, trace) for n, trace in traces.items()}, SHARE) if traces else {}
        right = {n for n, o in seen.items() if o.comparison and o.comparison.right and diagnose(o) is None}
        return [source for n, source in enumerate(sources) if n in right]

    def seen(
        self, drawn: Drawn, trace: wire.Trace, report: wire.Report | Outcome, output: bytes, slot: wire.Slot
    ) -> Observation:
        if isinstance(report, Outcome) or report.error:
            return self._observation(drawn, **ended(report), **facts(trace))
        if report.result is None:
            return self._observation(drawn, trouble=wire.Trouble("exception", message="no result came back"))
        compared = self._compare(drawn, output, slot)
        return self._observation(
            drawn, result=report.result, evidence=report.evidence, **facts(trace), comparison=compared
        )

    def _compare(self, drawn: Drawn, output: bytes, slot: wire.Slot) -> Comparison:
        got = wire.read_result(slot, output, drawn.dtype, drawn.shape)
        flat = self.exercise.inputs is not None and self.exercise.inputs.any_rank
        bound = bound_of(self.exercise, drawn).of_exponents(drawn.largest)
        return Comparison(got, drawn.expected.double(), bound, flat)

    def _replay_twice(self, cases: dict) -> dict[int, Observation]:
        """Every case again, with other values in and around its tensors: a card does not say what a kernel read."""
        again = {
            (i, "again"): (self.drawn(drawn.case, 1000 + i, poison="large"), trace)
            for i, (drawn, trace) in cases.items()
        }
        seen = self.replay(cases | again)
        first = {i: seen[i] for i in cases if i in seen}
        for i, o in first.items():
            if (i, "again") in seen and diagnose(o) is None:
                first[i] = seen[i, "again"]
        return first

    def _observation(self, drawn: Drawn, **seen) -> Observation:
        shape = tuple(drawn.shape)
        return Observation(self.exercise, drawn.case, drawn.arguments, self.judge.backend, expected=shape, **seen)


def _evenness(drawn: Drawn) -> tuple[int, ...]:
    """The powers of two by which sizes of the tensors divide, if they are no powers themselves; () if none is even."""
    sizes = {n for a in drawn.tensors for n in a.values.shape}
    return tuple(sorted({n & -n for n in sizes if n & -n >= EVEN and n & n - 1}))


def bound_of(exercise: Exercise, drawn: Drawn) -> Bound:
    """How far a right output may be from the reference."""
    of = {} if drawn.case.gradient is None else {"gradient": drawn.case.gradient}
    sums = exercise.sums(*values_of(drawn.arguments), **of) if exercise.sums else None
    return exercise.bounds[drawn.dtype].of_sums(sums)


def values_of(arguments: tuple) -> list:
    return [a.values if isinstance(a, Strided) else a for a in arguments]


def traces_of(plans: dict) -> dict:
    """The traces among plans that lead to a result, by the same keys."""
    return {key: trace for key, plan in plans.items() if (trace := trace_of(plan))}


def trace_of(plan: wire.Report | Outcome | None) -> wire.Trace | None:
    trace = plan.trace if isinstance(plan, wire.Report) else None
    return trace if trace and trace.result is not None else None


def named(programs: dict[str, str], traces: Iterable[wire.Trace]) -> dict[str, str]:
    """Those of some programs, by digest, that the launches of these traces name."""
    return {name: programs[name] for trace in traces for name in trace.digests if name in programs}


def facts(trace: wire.Trace) -> dict:
    """What an Observation tells of the launches.

    constants: powers of two among the arguments. sides: how many lengths of blocks the last launch has. block: elements
    of a program's block, the largest argument of the last launch that is called BLOCK…; 0 if none is.
    """
    powers = [v for launch in trace.launches for v in launch.args.values() if _is_power(v)]
    found = {"constants": tuple(dict.fromkeys(powers))[:8], "programs": tuple(each.programs for each in trace.launches)}
    for last in trace.launches[-1:]:
        found["block"] = max((v for k, v in last.args.items() if "BLOCK" in k.upper() and _is_length(v)), default=0)
        found["sides"] = sum(_is_power(v) and _is_length(v) for v in last.constants.values())
    return found


def _is_power(value: object) -> bool:
    return type(value) is int and value > 1 and value & (value - 1) == 0


def _is_length(value: object) -> bool:
    return type(value) is int and 1 < value <= 1 << 20


def types(traces: Iterable[wire.Trace]) -> tuple[tuple[str, ...], ...]:
    """The different lists of parameter types. A GPU's launcher depends on nothing else of a kernel.

    A list is left out with a type that the launcher's source must not contain. All pointers are one type.
    """
    kinds = (tuple(each.kind for each in launch.given) for trace in traces for launch in trace.launches)
    lists = dict.fromkeys(tuple("*i8" if re.fullmatch(r"\*\w+", kind) else kind for kind in each) for each in kinds)
    return tuple(each for each in lists if TYPES.issuperset(each) and len(each) <= MAX_TYPES)[:MAX_LISTS]


# -- sizes that no case can hold ---------------------------------------------------------------------------------------
# What passes is run at drawn sizes between 10⁴ and 10⁸ elements, others each time: `Inputs.large_cases` draws them. The
# host function is planned with tensors of that size. Then the addresses of all programs are checked and counted, and
# some programs compute (`run_large` in box/inside/replay.py). The rows that they wrote are compared with the reference.


@dataclass(eq=False, kw_only=True)
class LargeDrawn(Drawn):
    """shape: None where the rows of the output do not follow from a few of the tensors'."""

    seed: int
    by_element: bool = False  # each element of the output follows from one of each tensor

    @property
    def size(self) -> tuple[int, int]:
        """Elements of the output, and how many of them a row has."""
        return math.prod(self.shape), 1 if self.by_element else math.prod(self.shape[1:])

    @property
    def needed(self) -> int:
        """Elements that a row of the output follows from, or has: the most of one tensor."""
        cut = (a for a in self.tensors if a.axis is not None and not self.by_element)
        return max([self.size[1], *(math.prod(a.shape) // a.shape[a.axis] for a in cut)])

    @property
    def compared(self) -> bool:
        """Whether rows are compared with the reference. Of others the addresses are looked at."""
        return self.shape is not None and self.needed <= MOST_NEEDED and self.shared <= MOST_SHARED

    @property
    def shared(self) -> int:
        return sum(math.prod(a.shape) for a in self.tensors if a.axis is None)

    def rows(self, rows: torch.Tensor) -> tuple:
        """The arguments with these rows only, as the box has made them."""
        few = []
        for argument in self.arguments:
            if isinstance(argument, Large):
                at = rows
                if not self.by_element:
                    along = [rows if i == argument.axis else torch.arange(n) for i, n in enumerate(argument.shape)]
                    at = sum(torch.meshgrid(*(n * s for n, s in zip(along, argument.stride)), indexing="ij"))
                argument = Strided(seeded(self.seed + len(few), at, argument.dtype, argument.span))
            few.append(argument)
        return tuple(few)


def large_calls(exercise: Exercise, seed: int, bounds: Sequence[int] = ()) -> list[LargeDrawn]:
    """The cases of an exercise at large sizes. bounds: numbers of the answer that some sizes exceed."""
    generator = torch.Generator().manual_seed(seed)
    by_element = _by_element(exercise)
    made = []
    for i, case in enumerate(exercise.large_cases(generator, bounds)):
        arguments = case.make(generator)
        tensors = [a for a in arguments if isinstance(a, Large)]
        dtype = exercise.output_dtype or tensors[0].dtype
        rows = max((a.shape[0] for a in tensors if a.shape), default=0) if exercise.computes else 0
        made.append(LargeDrawn(
            case, arguments, _output_shape(exercise, arguments, case), dtype,
            configuration=i, computes=rows, seed=seed + 97 * i, by_element=by_element,
        ))  # fmt: skip
    return made


def large_finding(trials: Trials, plans: Plans, **device: int) -> Finding | None:
    """What is wrong with an answer in cases of large sizes; None if nothing is, or if we cannot tell.

    device: the `multiprocessors` of that on which the plans were made.
    """
    for drawn, plan in plans.items():
        if _is_its_fault(plan, trials, drawn):
            return _of_a_large_call(trials.exercise, drawn, **ended(plan, "plan"))
    traces = traces_of(plans)
    for drawn, trace in traces.items():
        started = [launch.programs for launch in trace.launches]
        if device and (found := other_programs(trials.exercise, drawn.arguments, started, **device)):
            return replace(found, case=drawn.case.name)
    return _run_large(trials, traces) if traces else None


def _by_element(exercise: Exercise) -> bool:
    return exercise.inputs is not None and exercise.inputs.any_rank


def _output_shape(exercise: Exercise, arguments: tuple, case: Case) -> tuple[int, ...] | None:
    if case.gradient is not None or exercise.inputs and not (exercise.inputs.large or exercise.inputs.rows):
        return None
    shapes = [a.shape for a in arguments if isinstance(a, Large)]
    if not shapes or exercise.random or _by_element(exercise):  # a random reference takes the output
        return np.broadcast_shapes(*shapes) if shapes else tuple(exercise.reference(*arguments).shape)
    # Of small tensors: each size has its prime. The arithmetic of "meta" imports torch._dynamo, which takes a second.
    small = dict(zip(dict.fromkeys(n for shape in shapes for n in shape), PRIMES, strict=False))
    tensors = [
        torch.ones([small[n] for n in a.shape], dtype=a.dtype) if isinstance(a, Large) else a for a in arguments
    ]
    known = {prime: size for size, prime in small.items()}
    return tuple(known[n] for n in _picked(exercise.reference(*tensors), case.pick).shape)


def _picked(output, pick: int | None) -> torch.Tensor:
    """The output, or that of several that is judged."""
    return output if pick is None else output[pick]


def _run_large(trials: Trials, traces: dict[LargeDrawn, wire.Trace]) -> Finding | None:
    packer, asked, cases, exercise = wire.Packer(), [], [*traces], trials.exercise
    for drawn, trace in traces.items():
        inputs = tuple(wire.LargeTensor(a.shape, a.stride, dtype_name(a.dtype), a.span, a.whole) for a in drawn.tensors)
        places, slot = packer.slot(8 * wire.MOST_FOUND), packer.slot(drawn.dtype.itemsize * wire.MOST_FOUND)
        starts = far_places(*drawn.size) if exercise.random else ()
        asked.append(wire.LargeCase(trace, inputs, drawn.seed, places, slot, drawn.compared, drawn.computes, starts))
    request = wire.ProgramRequest("large", trials.source, tuple(asked), named(trials.programs, traces.values()))
    outcome = trials.run(request, packer.tensors, packer.output_size)
    windows: dict[bytes, tuple[int, int]] = {}
    for i, report in sorted(outcome.by_case(len(cases)).items()):
        if isinstance(report, Outcome):
            return None  # it took too much of our time or memory, for a size that we chose
        if report.error and report.error.kind in IN_THE_KERNEL:
            return _of_a_large_call(exercise, cases[i], trouble=report.error)
        found = _judged_large(exercise, cases[i], asked[i], report.value, outcome.output, windows)
        if found:
            return found
    return None


def _judged_large(
    exercise: Exercise, drawn: LargeDrawn, asked: wire.LargeCase, value, output: bytes, windows: dict
) -> Finding | None:
    """windows: of the masks of an answer, see far_windows."""
    if not isinstance(value, dict) or any(type(value.get(name)) is not int for name in ("elements", "stored", "found")):
        return None
    if left_out := _left_out(exercise, drawn, value):
        return Finding(*left_out, TOO_FEW, GROW, case=drawn.case.name)
    if not drawn.compared:
        return None
    (elements, columns), dtype = drawn.size, drawn.dtype
    count = min(value["found"], wire.MOST_FOUND)
    at = wire.read_result(asked.places, output, torch.int64, (wire.MOST_FOUND,))[:count]
    got = wire.read_result(asked.slot, output, dtype, (wire.MOST_FOUND,))[:count]
    if not count or bool(((at < 0) | (at >= elements)).any()):
        return None
    if exercise.random and (again := far_windows(at, got != 0, asked.starts, drawn.arguments[-1], windows)):
        return replace(again, case=drawn.case.name)
    rows, row = torch.unique(torch.div(at, columns, rounding_mode="floor"), return_inverse=True)
    rows = rows[: max(8, MOST_COMPARED // drawn.needed)]
    arguments, known = drawn.rows(rows), row < len(rows)
    place = (row * columns + at % columns)[known]
    if exercise.random:  # what no chosen program wrote counts as dropped
        output = torch.zeros(arguments[0].values.shape, dtype=dtype)
        output.reshape(-1)[place] = got[known]
        arguments = *arguments, Strided(output)
    expected = exercise.reference(*(a.values if isinstance(a, Strided) else a for a in arguments))
    expected = _picked(expected, drawn.case.pick).double()
    expected = expected if drawn.tensors else expected[rows]
    if not exercise.random:  # what no chosen program wrote counts as right
        output = expected.to(dtype)
        output.reshape(-1)[place] = got[known]
    # A bound of row sums is for long rows: in a few elements, errors do not average out.
    few = replace(drawn, arguments=arguments)
    comparison = Comparison(output, expected, replace(bound_of(exercise, few), row_sum=None))
    return None if comparison.right else _of_a_large_call(exercise, few, comparison=comparison)


def _left_out(exercise: Exercise, drawn: LargeDrawn, value: dict) -> tuple[str, str] | None:
    """What all programs together do not store, or do not read: the slug, and a sentence."""
    elements, stored = value["elements"], value["stored"]
    if stored < elements:
        share = f"store {stored:,} of {elements:,} elements" if stored else "leave elements out"
        return "unwritten-output", f"All programs together {share}."
    match value.get("unread"):
        case [int(number), int(read), int(whole)] if read < whole:
            names = [name for name, a in zip(exercise.parameters, drawn.arguments) if isinstance(a, Large)]
            what = names[number] if number < len(names) else "the gradient that comes in"
            return "wrong-value", f"All programs together read {read:,} of {whole:,} elements of {what}."
    return None


def _is_its_fault(plan: wire.Report | Outcome, trials: Trials, drawn: Drawn) -> bool:
    """Whether the answer is why a plan failed, at a size that we chose, and not one of our limits, which is noted.

    Where each element is read once, a program holds whole rows, and no block holds several of the longest ones.
    """
    if isinstance(plan, Outcome) or plan.error is None:
        return has_ended(plan)
    error = plan.error
    if error.kind == "compile" and trials.exercise.reads_per_element == 1 and "maximum tensor numel" in error.message:
        return False
    ours = error.message if error.kind in OUR_KINDS else ""
    if error.kind == "memory" or re.search("memory|allocate", error.message):
        ours = "it needs too much memory"
    if ours:
        trials.unjudged.setdefault(ours, drawn.case.name)
    return not ours


def _of_a_large_call(exercise: Exercise, drawn: LargeDrawn, **seen) -> Finding | None:
    return diagnose(Observation(exercise, drawn.case, drawn.arguments, "interpreter", **seen))


# -- sizes beyond the numbers of an answer ---------------------------------------------------------------
# An answer may cut a size off, count it in few bits, or branch at it. The drawn sizes meet such a number by chance. So
# there are cases just beyond the whole numbers of the source, and at their multiples. Most right answers hold no number
# that the drawn sizes have not passed: these cases cost them nothing.


def calls_beyond(trials: Trials, bounds: Sequence[int], divisors: Sequence[int]) -> list[Drawn]:
    """The cases that these numbers of an answer ask for, see `whole_numbers`, beside those that it has passed."""
    inputs = trials.exercise.inputs
    if inputs is None or not inputs.tensors:
        return []
    generator = torch.Generator().manual_seed(trials.seed)
    cases = inputs.beyond(bounds, divisors, _reached(trials), generator)
    return [trials.drawn(case, 800 + i) for i, case in enumerate(cases)]


def _reached(trials: Trials) -> dict[str, int]:
    """By dimension, the size that FEW_CASES cases so far have, or more."""
    sizes: dict[str, list[int]] = {}
    for case in trials.cases:
        for argument, spec in zip(case.arguments, trials.exercise.inputs.arguments):
            if isinstance(argument, Strided) and isinstance(spec, TensorArgument):
                shape = argument.values.shape[argument.values.ndim - len(spec.shape) :]
                for name, size in zip(spec.shape, shape):
                    sizes.setdefault(name, []).append(size)
    return {name: sorted(each)[-FEW_CASES:][0] for name, each in sizes.items()}


def finding_beyond(trials: Trials, plans: Plans) -> Finding | None:
    """What is wrong with an answer in such cases; None if nothing is, or if they take too long."""
    for drawn, plan in plans.items():
        if _is_its_fault(plan, trials, drawn):
            return diagnose(trials.unplanned(drawn, plan, True))
    seen = trials.replay({drawn: (drawn, trace) for drawn, trace in traces_of(plans).items()})
    found = (diagnose(each) for each in seen.values() if not each.exceeded)
    return next((each for each in found if each and each.slug not in OUR_LIMITS), None)
