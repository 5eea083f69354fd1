"""The cases of one answer that takes tensors: drawn, planned on decoys, replayed on the real inputs, observed."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import torch

from ..box import Outcome
from ..box.wire import Report, Trouble
from ..box.wire.layout import Packer, read_result
from ..box.wire.requests import Decoy, PlanCase, PlanRequest, ReplayCase, ReplayRequest, Scalar, Slot
from ..diagnosis import Observation, diagnose
from ..diagnosis.comparison import Comparison
from ..exercises.cases import Case, Cotangent, Strided, Tag
from ..exercises.spec import Exercise
from ..tensors import dtype_name
from .launched import MAX_CONFIGURATIONS, block, constants, digests, programs, sides, tuned_launches

# Of the exercise's time. All blanks together take milliseconds without a GPU, which compiles each one.
BLANK_SHARE = {False: 0.25, True: 0.5}
MAX_VARIED = 10_000  # elements of the case that is replayed with other values of autotuned constants


@dataclass
class Drawn:
    """A case with its arguments and the expected output."""

    case: Case
    arguments: tuple
    expected: torch.Tensor | None
    poison: str = "nan"
    configuration: int = 0  # of autotuned kernels, see PlanCase
    computes: int = 0  # the most elements of a tensor that the host function may compute with
    variants: bool = False  # whether its plan has the programs with other values of autotuned constants
    change: list | None = None  # of its programs, see ReplayCase

    @property
    def tensors(self) -> list[Strided]:
        return [a for a in self.arguments if isinstance(a, Strided)]

    @functools.cached_property
    def largest(self) -> float:
        """The largest finite number of the tensors, without its sign."""
        numbers = [a.values for a in self.tensors if a.values.is_floating_point() and a.values.numel()]
        return max((float(x.nan_to_num(0.0, 0.0, 0.0).abs().max()) for x in numbers), default=0.0)

    def described(self) -> tuple[Decoy | Scalar, ...]:
        """The arguments without their values: what the planning process gets to know."""
        first: dict[int, int] = {}
        same = [first.setdefault(id(a), i) for i, a in enumerate(self.arguments)]
        return tuple(
            Decoy(tuple(a.values.shape), a.stride, dtype_name(a.values.dtype), same[i] if same[i] < i else None)
            if isinstance(a, Strided)
            else Scalar(a)
            for i, a in enumerate(self.arguments)
        )

    def planned(self, source: int = 0, **where) -> PlanCase:
        """A plan for the box. where: the other fields of PlanCase."""
        asked = {"pick": self.case.pick, "gradient": self.case.gradient, "computes": self.computes,
                 "variants": self.variants}  # fmt: skip
        return PlanCase(self.described(), self.configuration, source, **asked, **where)


class Trials:
    """What an answer does with the cases of its exercise. `traces` are those that could be planned, by case.

    programs: those that any trace names, by digest. The judge only carries them.
    """

    def __init__(self, judge, exercise: Exercise, source: str, seed: int):
        self.judge, self.exercise, self.source = judge, exercise, source
        self.on_gpu = judge.backend != "interpreter"
        self.traces: dict[int, dict] = {}
        self.elsewhere: list[dict] = []  # traces of calls that launch other work on another machine
        self.programs: dict[str, str] = {}
        self.known: dict[tuple[str, ...], dict] = {}  # what plans found, by sources: one may not speak for another
        self.seed = seed
        cases = exercise.cases_of(torch.Generator().manual_seed(seed), self.on_gpu)
        self.cases = [self._draw(case, seed + i) for i, case in enumerate(cases)]
        by_size = sorted(self.cases, key=lambda drawn: -drawn.expected.numel())
        for number, drawn in enumerate(by_size):
            drawn.configuration = number  # so the large cases have different ones
        for varied in [drawn for drawn in by_size if 1 < drawn.expected.numel() <= MAX_VARIED][:1]:
            varied.variants = True

    def drawn(self, case: Case, number: int) -> Drawn:
        """Another case, with arguments. number: another one for each case."""
        return self._draw(case, self.seed + number)

    def _draw(self, case: Case, seed: int, **how) -> Drawn:
        generator = torch.Generator().manual_seed(seed)
        made = case.make(generator)
        arguments = tuple(Strided(a.values, strides=a.strides) if isinstance(a, Cotangent) else a for a in made)
        values = _values(arguments)
        rows = [v.shape[0] for v in values if isinstance(v, torch.Tensor) and v.ndim] if self.exercise.computes else []
        expected = _expected(self.exercise, case, values)
        return Drawn(case, arguments, expected, computes=max(rows, default=0), **how)

    @property
    def launched(self) -> set[str]:
        """The kernels that the host function launches, whether or not they ran to their end."""
        steps = (step for trace in self.traces.values() for step in trace["steps"])
        return {str(step.get("kernel")) for step in steps if isinstance(step, dict)}

    def observe(self) -> list[Observation]:
        """Plans every case, replays those that could be planned, and says what was seen in each."""
        plans = self.plan([self.source], self.cases)
        if more := self._in_other_configurations(traces_of(plans)):
            plans |= {len(self.cases) + i: plan for i, plan in self.plan([self.source], more).items()}
            self.cases += more
        self.traces = replayable = traces_of(plans)
        cases = {i: (self.cases[i], trace) for i, trace in replayable.items()}
        seen = self._replay_twice(cases) if self.on_gpu else self.replay(cases)
        seen |= self._looked_at_closely({i: o for i, o in seen.items() if o.harmed_the_card}, cases)
        # a case that was planned and not reached is no case: an earlier one used up the time
        order = [i for i in range(len(self.cases)) if i in seen or i in plans.keys() - replayable.keys()]
        launches = any((p.trace or {}).get("launches") for p in plans.values() if isinstance(p, Report))
        return [seen[i] if i in seen else self.unplanned(self.cases[i], plans[i], launches) for i in order]

    # -- planning ----------------------------------------------------------------------------------------

    def plan(self, sources: list[str], cases: list[Drawn], of: list[int] | None = None) -> dict[int, Report | Outcome]:
        """By case: the report of its plan, or, for the case that ended the process, how it ended.

        of: for each case, the number of the source that it calls.
        """
        numbers = of or [0] * len(cases)
        described = tuple(d.planned(n) for d, n in zip(cases, numbers, strict=True))
        return self.ask(PlanRequest(tuple(sources), self.exercise.entry, described), len(cases))

    def ask(self, request: PlanRequest, count: int) -> dict[int, Report | Outcome]:
        """As `plan`, for any request of this kind with so many cases."""
        known = self.known.get(request.sources, {})
        outcome = self.judge.run(self.exercise, replace(request, known=known))
        for report in outcome.reports:
            self.known[request.sources] = known = known | (report.found or {})
        plans = outcome.by_case(count)
        for report in plans.values():
            self.programs |= report.programs if isinstance(report, Report) else {}
        return plans

    def _in_other_configurations(self, traces: dict[int, dict]) -> list[Drawn]:
        """The largest ragged case again, in each configuration of an autotuner that no large case was planned in."""
        tuned = {i: [step["tuned"] for step in tuned_launches(trace)] for i, trace in traces.items()}
        sizes = {i: self.cases[i].expected.numel() for i in traces if Tag.RAGGED in self.cases[i].case.about}
        largest = max(sizes, key=sizes.get, default=None)
        if largest is None:
            return []
        spaces = [len(each["space"]) for found in tuned.values() for each in found]
        count = min(max(spaces, default=0), MAX_CONFIGURATIONS)
        large = [i for i in traces if 2 * self.cases[i].expected.numel() > sizes[largest]]
        seen = {str(each.get("choice")) for i in large for each in tuned[i]}
        case = self.cases[largest].case
        return [
            self._draw(replace(case, name=f"{case.name}, configuration {c}"), self.seed + 600 + c, configuration=c)
            for c in range(count)
            if str(c) not in seen
        ]

    def unplanned(self, drawn: Drawn, planned: Report | Outcome, launches: bool) -> Observation:
        """What was seen of a case whose plan has no trace. launches: whether any case launched a kernel."""
        if isinstance(planned, Outcome):
            return self._observation(drawn, stage="plan", exceeded=planned.exceeded, death=planned.death)
        if planned.error:
            return self._observation(drawn, stage="plan", trouble=planned.error)
        return self._observation(drawn, stage="plan", trouble=_returned(planned.trace, self.exercise, launches))

    # -- replaying ---------------------------------------------------------------------------------------

    def replay(self, cases: dict, share: float = 1.0) -> dict:
        """What the kernels did on the real inputs, by the keys of `cases` (a case with its trace each).

        A case that kills its process does not take the others along, except if it used up the time.
        """
        seen = {}
        waiting = dict(cases)
        for _ in range(4):
            if not waiting:
                break
            reported, exceeded = self._replay_once(waiting, share=share)
            seen |= reported
            if exceeded or not reported:
                break
            waiting = {key: case for key, case in waiting.items() if key not in seen}
        return seen

    def replay_blanks(self, cases: dict) -> dict:
        """The same for blanks, one by one. A key is the name of a blank and a number.

        A blank that kills its process or uses up its time is not tried again. The others are.
        """
        seen = {}
        waiting = dict(cases)
        while waiting and self.judge.seconds_left:
            reported, _ = self._replay_once(waiting, share=BLANK_SHARE[self.on_gpu])
            if not reported:
                break
            seen |= reported
            last, _ = list(reported)[-1]  # its process ended here, or it is the last one
            waiting = {key: case for key, case in waiting.items() if key not in seen and key[0] != last}
        return seen

    def _replay_once(self, cases: dict, **how) -> tuple[dict, bool]:
        """What one process saw of `cases`, in their order, and whether it used too much time or memory."""
        order = list(cases)
        job, slots = self._replay_job(list(cases.values()))
        outcome = self.judge.run(self.exercise, *job, **how)
        reports = sorted(outcome.by_case(len(order)).items())
        seen = {order[i]: self._seen(*cases[order[i]], report, outcome, slots[i]) for i, report in reports}
        return seen, bool(outcome.exceeded)

    def _replay_job(self, cases: list) -> tuple[tuple, list[Slot]]:
        """A replay for the box (request, tensors, size of the output), and where each result lies in the output."""
        packer = Packer()
        described = tuple(
            ReplayCase(
                trace=trace,
                inputs=tuple(packer.tensor(argument.values, argument.stride) for argument in drawn.tensors),
                slot=packer.slot(drawn.expected.numel() * self._output_dtype(drawn).itemsize),
                poison=drawn.poison,
                computes=drawn.computes,
                change=drawn.change,
            )
            for drawn, trace in cases
        )
        request = ReplayRequest(self.source, described, self.named(trace for _, trace in cases))
        return (request, packer.tensors, packer.output_size), [case.slot for case in described]

    def named(self, traces) -> dict[str, str]:
        """The programs that these traces name."""
        return {name: self.programs[name] for name in digests(traces) if name in self.programs}

    def _seen(self, drawn, trace, report: Report | Outcome, outcome: Outcome, slot) -> Observation:
        launched = {"constants": constants(trace), "block": block(trace), "programs": tuple(programs(trace))}
        launched["sides"] = sides(trace)
        if isinstance(report, Outcome):
            return self._observation(drawn, exceeded=report.exceeded, death=report.death, **launched)
        if report.error:
            return self._observation(drawn, trouble=report.error, **launched)
        if report.result is None:
            return self._observation(drawn, trouble=Trouble("exception", message="no result came back"))
        return self._observation(
            drawn,
            result=report.result,
            evidence=report.evidence,
            **launched,
            comparison=self._compare(drawn, report, outcome.output, slot),
        )

    def _compare(self, drawn: Drawn, report: Report, output: bytes, slot) -> Comparison:
        dtype = self._output_dtype(drawn)
        expected = drawn.expected.double()
        got = read_result(slot, output, dtype, expected.shape)
        flat = self.exercise.inputs is not None and self.exercise.inputs.any_rank
        of = {} if drawn.case.gradient is None else {"gradient": drawn.case.gradient}
        sums = self.exercise.sums(*_values(drawn.arguments), **of) if self.exercise.sums else None
        return Comparison(got, expected, self.exercise.bounds[dtype].of_exponents(drawn.largest).of_sums(sums), flat)

    def _replay_twice(self, cases: dict) -> dict[int, Observation]:
        """Every case again, with other values in and around its tensors: a card does not say what a kernel read."""
        again = {
            (i, "again"): (self._draw(drawn.case, self.seed + 1000 + i, poison="large"), trace)
            for i, (drawn, trace) in cases.items()
        }
        seen = self.replay(cases | again)
        first = {i: seen[i] for i in cases if i in seen}
        for i, o in first.items():
            if (i, "again") in seen and diagnose(o) is None:
                first[i] = seen[i, "again"]
        return first

    def _looked_at_closely(self, harmed: dict[int, Observation], cases: dict) -> dict[int, Observation]:
        """The access that did it, found in the first of these cases, explains them all."""
        for i in list(harmed)[:1]:
            job, _ = self._replay_job([cases[i]])
            if access := self.judge.box.sanitize(*job):
                return {i: replace(o, access=access) for i, o in harmed.items()}
        return {}

    def _output_dtype(self, drawn: Drawn) -> torch.dtype:
        if drawn.case.gradient is not None:
            return drawn.arguments[drawn.case.gradient].values.dtype
        return self.exercise.output_dtype or drawn.tensors[0].values.dtype

    def _observation(self, drawn: Drawn, **seen) -> Observation:
        expected = () if drawn.expected is None else tuple(drawn.expected.shape)
        return Observation(self.exercise, drawn.case, drawn.arguments, self.judge.backend, expected=expected, **seen)


def _values(arguments: tuple) -> list:
    return [a.values if isinstance(a, Strided) else a for a in arguments]


def _expected(exercise: Exercise, case: Case, values: list) -> torch.Tensor:
    """What a right answer gives in a case: an output, or the gradient of one argument, in float64."""
    if case.gradient is not None:
        *values, incoming = values
        argument = values[case.gradient] = values[case.gradient].double().requires_grad_()
    expected = exercise.reference(*values)
    expected = expected if case.pick is None else expected[case.pick]
    if case.gradient is None:
        return expected if expected.dtype != torch.float64 else _overflowed(exercise, expected, values)
    return torch.autograd.grad(expected, argument, incoming.double().reshape(expected.shape))[0]


def _overflowed(exercise: Exercise, expected: torch.Tensor, values: list) -> torch.Tensor:
    """The expected numbers, infinite where the dtype of the output has none so large."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    dtype = exercise.output_dtype or (tensors[0].dtype if tensors else torch.float32)
    if not dtype.is_floating_point:
        return expected
    about = torch.finfo(dtype)
    most = about.max * (1 + about.eps / 4)  # halfway to the next power of two: from there on, it is rounded to infinity
    return torch.where(expected.abs() >= most, torch.inf * expected.sign(), expected)


def _returned(trace: dict | None, exercise: Exercise, launches: bool) -> Trouble:
    kind = str((trace or {}).get("returned", "nothing"))[:80]
    if kind == "NoneType" and not launches:
        return Trouble("exception", "NotImplementedError", f"{exercise.entry} returns None and launches no kernel.")
    kind = "None" if kind == "NoneType" else kind
    return Trouble("returned", construct=kind)


def traces_of(plans: dict[int, Report | Outcome]) -> dict[int, dict]:
    """The traces among plans, by case."""
    return {i: p.trace for i, p in plans.items() if isinstance(p, Report) and "steps" in (p.trace or {})}
