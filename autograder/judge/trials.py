"""The cases of one answer that takes tensors: drawn, planned on decoys, replayed on the real inputs, observed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from ..box import Outcome
from ..box.wire import Report, Trouble
from ..box.wire.layout import Packer, read_result
from ..box.wire.requests import Decoy, PlanCase, PlanRequest, ReplayCase, ReplayRequest, Scalar, Slot, TemplateRequest
from ..diagnosis import Observation, diagnose
from ..diagnosis.comparison import Comparison
from ..exercises.spec import Blanks, Case, Exercise, Strided
from ..tensors import dtype_name


@dataclass
class Drawn:
    """A case with its arguments and the expected output."""

    case: Case
    arguments: tuple
    expected: torch.Tensor | None
    poison: str = "nan"
    backwards: bool = False  # every other case: an answer that needs an order of its programs fails in one of them

    @property
    def tensors(self) -> list[Strided]:
        return [a for a in self.arguments if isinstance(a, Strided)]

    def described(self) -> tuple[Decoy | Scalar, ...]:
        """The arguments without their values: what the planning process gets to know."""
        return tuple(
            Decoy(tuple(a.values.shape), a.stride, dtype_name(a.values.dtype)) if isinstance(a, Strided) else Scalar(a)
            for a in self.arguments
        )


class Trials:
    """What an answer does with the cases of its exercise. `traces` are those that could be planned, by case."""

    def __init__(self, judge, exercise: Exercise, source: str, seed: int):
        self.judge, self.exercise, self.source = judge, exercise, source
        self.on_gpu = judge.backend != "interpreter"
        self.traces: dict[int, dict] = {}
        self.seed = seed
        cases = [case for case in exercise.cases if self.on_gpu or not case.gpu_only]
        self.cases = [self._draw(case, seed + i, backwards=i % 2 == 1) for i, case in enumerate(cases)]

    def _draw(self, case: Case, seed: int, **how) -> Drawn:
        generator = torch.Generator().manual_seed(seed)
        arguments = case.make(generator)
        values = [a.values if isinstance(a, Strided) else a for a in arguments]
        return Drawn(case, arguments, self.exercise.reference(*values), **how)

    @property
    def launched(self) -> set[str]:
        """The kernels that the host function launches, whether or not they ran to their end."""
        steps = (step for trace in self.traces.values() for step in trace["steps"])
        return {str(step.get("kernel")) for step in steps if isinstance(step, dict)}

    def observe(self) -> list[Observation]:
        """Plans every case, replays those that could be planned, and says what was seen in each."""
        plans = self.plan(self.source, self.cases)
        replayable = {i: p.trace for i, p in plans.items() if isinstance(p, Report) and "steps" in (p.trace or {})}
        self.traces = replayable
        cases = {i: (self.cases[i], trace) for i, trace in replayable.items()}
        if self.on_gpu:
            seen = self._replay_twice(cases)
        else:
            seen = self._without_poison(self.replay(self.source, cases), cases)
        seen |= self._looked_at_closely({i: o for i, o in seen.items() if o.harmed_the_card}, cases)
        order = [i for i in range(len(self.cases)) if i in seen or i in plans]
        launches = any((p.trace or {}).get("launches") for p in plans.values() if isinstance(p, Report))
        return [seen[i] if i in seen else self._unplanned(i, plans[i], launches) for i in order]

    # -- planning ----------------------------------------------------------------------------------------

    def plan(self, source: str, cases: list[Drawn]) -> dict[int, Report | Outcome]:
        """By case: the report of its plan, or, for the case that ended the process, how it ended."""
        described = tuple(PlanCase(drawn.described()) for drawn in cases)
        outcome = self.judge.run(self.exercise, PlanRequest(source, self.exercise.entry, described))
        return outcome.by_case(len(cases))

    def _unplanned(self, index: int, planned: Report | Outcome, launches: bool) -> Observation:
        drawn = self.cases[index]
        if isinstance(planned, Outcome):
            return self._observation(drawn, stage="plan", exceeded=planned.exceeded, death=planned.death)
        if planned.error:
            return self._observation(drawn, stage="plan", trouble=planned.error)
        return self._observation(drawn, stage="plan", trouble=_returned(planned.trace, self.exercise, launches))

    # -- replaying ---------------------------------------------------------------------------------------

    def replay(self, source: str, cases: dict, template: Blanks | None = None) -> dict:
        """What the kernels did on the real inputs, by the keys of `cases` (a case with its trace each).

        With a template, a key is a blank and a number, and that blank is tried in the template. A case that kills
        its process does not take the others along.
        """
        seen = {}
        waiting = dict(cases)
        for _ in range(4):
            if not waiting:
                break
            order = list(waiting)
            blanks = [key[0] for key in order] if template else None
            job, slots = self._replay_job(source, [waiting[key] for key in order], template, blanks)
            outcome = self.judge.run(self.exercise, *job)
            reports = outcome.by_case(len(order))
            for position, report in reports.items():
                drawn, trace = waiting.pop(order[position])
                seen[order[position]] = self._seen(drawn, trace, report, outcome, slots[position])
            if outcome.exceeded or not reports:
                break
        return seen

    def _replay_job(self, source, cases, template=None, blanks=None) -> tuple[tuple, list[Slot]]:
        """A replay for the box (request, tensors, size of the output), and where each result lies in the output."""
        packer = Packer()
        described = tuple(
            ReplayCase(
                trace=trace,
                inputs=tuple(packer.tensor(argument.values, argument.stride) for argument in drawn.tensors),
                slot=packer.slot(drawn.expected.numel() * self._output_dtype(drawn).itemsize),
                poison=drawn.poison,
                backwards=drawn.backwards,
                blank=blank,
            )
            for (drawn, trace), blank in zip(cases, blanks or [None] * len(cases), strict=True)
        )
        if template:
            template = TemplateRequest(template.template, template.kernel, tuple(template.names))
        request = ReplayRequest(source, described, template)
        return (request, packer.tensors, packer.output_size), [case.slot for case in described]

    def _seen(self, drawn, trace, report: Report | Outcome, outcome: Outcome, slot) -> Observation:
        constants = _constants(trace)
        if isinstance(report, Outcome):
            return self._observation(drawn, exceeded=report.exceeded, death=report.death, constants=constants)
        if report.error:
            return self._observation(drawn, trouble=report.error, constants=constants)
        if report.result is None:
            return self._observation(drawn, trouble=Trouble("exception", message="no result came back"))
        return self._observation(
            drawn,
            result=report.result,
            evidence=report.evidence,
            constants=constants,
            comparison=self._compare(drawn, report, outcome.output, slot),
        )

    def _compare(self, drawn: Drawn, report: Report, output: bytes, slot) -> Comparison:
        dtype = self._output_dtype(drawn)
        expected = drawn.expected.double()
        got = read_result(slot, output, dtype, expected.shape)
        finite = [a.values[torch.isfinite(a.values)].abs() for a in drawn.tensors]
        largest = max((float(values.max()) for values in finite if values.numel()), default=0.0)
        return Comparison(got, expected, self.exercise.bounds[dtype].of_exponents(largest))

    def _replay_twice(self, cases: dict) -> dict[int, Observation]:
        """Every case again, with other values in and around its tensors: a card does not say what a kernel read."""
        others = {i: self._draw(drawn.case, self.seed + 1000 + i, poison="large") for i, (drawn, _) in cases.items()}
        again = {
            (i, "again"): (others[i], trace)
            for i, (drawn, trace) in cases.items()
            if others[i].described() == drawn.described()  # some cases draw their shape, too
        }
        seen = self.replay(self.source, cases | again)
        first = {i: seen[i] for i in cases if i in seen}
        for i, o in first.items():
            if (i, "again") in seen and diagnose(o) is None:
                first[i] = seen[i, "again"]
        return first

    def _without_poison(self, seen: dict[int, Observation], cases: dict) -> dict[int, Observation]:
        """Wrong results are tried once more with masked-off lanes that read as zero: did they matter?"""
        wrong = {
            i: (replace(cases[i][0], poison="zero"), cases[i][1])
            for i, o in seen.items()
            if o.comparison and not o.comparison.right
        }
        again = self.replay(self.source, wrong)
        for i, other in again.items():
            if other.comparison and other.comparison.right and other.result == seen[i].result:
                seen[i] = replace(seen[i], right_without_poison=True)
        return seen

    def _looked_at_closely(self, harmed: dict[int, Observation], cases: dict) -> dict[int, Observation]:
        """The access that did it, found in the first of these cases, explains them all."""
        for i in list(harmed)[:1]:
            job, _ = self._replay_job(self.source, [cases[i]])
            if access := self.judge.box.sanitize(*job):
                return {i: replace(o, access=access) for i, o in harmed.items()}
        return {}

    def _output_dtype(self, drawn: Drawn) -> torch.dtype:
        return self.exercise.output_dtype or drawn.tensors[0].values.dtype

    def _observation(self, drawn: Drawn, **seen) -> Observation:
        return Observation(self.exercise, drawn.case, drawn.arguments, self.judge.backend, **seen)


def _returned(trace: dict | None, exercise: Exercise, launches: bool) -> Trouble:
    kind = str((trace or {}).get("returned", "nothing"))[:80]
    if kind == "NoneType" and not launches:
        return Trouble("exception", "NotImplementedError", f"{exercise.entry} returns None and launches no kernel.")
    kind = "None" if kind == "NoneType" else kind
    return Trouble("exception", message=f"{exercise.entry} returned {kind}, not a tensor")


def _constants(trace: dict) -> tuple[int, ...]:
    """Integers among the launch arguments: block sizes are among them."""
    found = []
    for step in trace.get("steps", ()):
        if isinstance(step, dict) and step.get("op") == "launch" and isinstance(step.get("args"), dict):
            found += [v for v in step["args"].values() if type(v) is int and v >= 2 and v & (v - 1) == 0]
    return tuple(dict.fromkeys(found))[:8]
