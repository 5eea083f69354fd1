"""The judge: draws inputs, asks the box, compares, explains.

It never imports, unpickles or executes anything of a learner's. The learner's source goes into the box as text;
traces, bytes and short reports come back, after the process that made them is dead. See autograder/box.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, replace

import torch

from .box import Box, Outcome
from .box.messages import Report, Trouble
from .compare import Comparison
from .diagnosis import Observation, diagnose, overall
from .exercises import find
from .exercises.spec import Case, Exercise, Strided
from .judge_values import ValueJudgement
from .verdict import CaseResult, Finding, Verdict

MAX_SOURCE = 200_000
MASK64 = (1 << 63) - 1


def this_backend() -> str:
    """What kernels run on here: "interpreter", "cuda" or "hip"."""
    if os.environ.get("TRITON_INTERPRET") == "1" or not torch.cuda.is_available():
        return "interpreter"
    return "hip" if torch.version.hip else "cuda"


class Judge:
    """A context manager that owns one box. Not for several threads at once: make one judge each.

    confine=False runs the code with the caller's rights: for one's own code only. Raises lockdown.Unconfined
    where confinement is asked for and this machine has none.
    """

    def __init__(self, confine: bool = True, backend: str | None = None):
        self.backend = backend or this_backend()
        self.box = Box(self.backend, confine)
        self._template_traces: dict[str, dict[int, dict]] = {}

    def __enter__(self) -> Judge:
        self.box.start()
        return self

    def __exit__(self, *_):
        self.box.close()

    def judge(self, name: str, source: str, seed: int | None = None) -> Verdict:
        """The verdict on `source` as an answer to exercise `name`. `seed` repeats an earlier draw of inputs."""
        exercise = find(name)
        if len(source) > MAX_SOURCE:
            finding = Finding("runtime-error", f"The answer is longer than {MAX_SOURCE} characters.")
            return self._verdict(exercise, finding)
        if not source.strip():
            finding = Finding("not-attempted", "There is no code.", advice=f"define {exercise.signature}.")
            return self._verdict(exercise, finding)
        judgement = _KINDS[exercise.kind](self, exercise, source, secrets.randbits(62) if seed is None else seed)
        return judgement.verdict()

    def _verdict(self, exercise: Exercise, finding: Finding) -> Verdict:
        blanks = dict.fromkeys(exercise.blanks.names, False) if exercise.blanks else {}
        return Verdict(exercise.name, False, 0, exercise.points, self.backend, finding, (), blanks)


@dataclass
class _Drawn:
    """A case with its arguments and the expected output."""

    case: Case
    arguments: tuple
    expected: torch.Tensor | None

    @property
    def tensors(self) -> list[Strided]:
        return [a for a in self.arguments if isinstance(a, Strided)]

    def described(self) -> list[dict]:
        """The arguments without their values: what the planning process gets to know."""
        return [
            {"shape": list(a.values.shape), "stride": list(a.stride), "dtype": _dtype(a.values)}
            if isinstance(a, Strided)
            else {"scalar": a}
            for a in self.arguments
        ]


class KernelJudgement:
    """One answer to an exercise whose function takes tensors and launches Triton kernels."""

    def __init__(self, judge: Judge, exercise: Exercise, source: str, seed: int):
        self.judge, self.exercise, self.source = judge, exercise, source
        self.on_gpu = judge.backend != "interpreter"
        self.cases = [self._draw(c, seed + i) for i, c in enumerate(exercise.cases) if self.on_gpu or not c.gpu_only]

    def _draw(self, case: Case, seed: int) -> _Drawn:
        generator = torch.Generator().manual_seed(seed & MASK64)
        arguments = case.make(generator)
        values = [a.values if isinstance(a, Strided) else a for a in arguments]
        return _Drawn(case, arguments, self.exercise.reference(*values))

    # -- the verdict -------------------------------------------------------------------------------------

    def verdict(self) -> Verdict:
        observations = self.observe()
        findings = [diagnose(o) for o in observations]
        finding = overall(observations, findings) or self._about_the_space(observations)
        passed = finding is None
        exercise = self.exercise
        score, blanks, blank_findings = (exercise.points if passed else 0), {}, {}
        if exercise.blanks:
            blanks = dict.fromkeys(exercise.blanks.names, passed)
            if not passed and any(exercise.blanks.kernel in o.evidence.launched for o in observations):
                blank_findings = self._judge_blanks()
                if blank_findings is not None:
                    blanks = {name: name not in blank_findings for name in exercise.blanks.names}
                    score = exercise.points * sum(blanks.values()) / len(blanks)
        return Verdict(
            exercise=exercise.name,
            passed=passed,
            score=score,
            points=exercise.points,
            backend=self.judge.backend,
            finding=finding,
            cases=tuple(CaseResult(o.case.name, f) for o, f in zip(observations, findings)),
            blanks=blanks,
            blank_findings=blank_findings or {},
        )

    def observe(self) -> list[Observation]:
        """Plans every case, replays those that could be planned, and says what was seen in each."""
        plans = self._plan(self.source, self.cases)
        replayable = {i: p.trace for i, p in plans.items() if isinstance(p, Report) and "steps" in (p.trace or {})}
        outcomes = self._replay(self.source, {i: (self.cases[i], t) for i, t in replayable.items()})
        observations = []
        for i in range(len(self.cases)):
            if i in outcomes:
                observations.append(self._again_without_poison(i, outcomes[i], replayable[i]))
            elif i in plans:
                observations.append(self._unplanned(i, plans[i]))
        return observations

    # -- planning ----------------------------------------------------------------------------------------

    def _plan(self, source: str, cases: list[_Drawn]) -> dict[int, Report | Outcome]:
        """By case: the report of its plan, or, for the case that ended the process, how it ended."""
        outcome = self.judge.box.run(
            {
                "kind": "plan",
                "source": source,
                "entry": self.exercise.entry,
                "cases": [{"arguments": drawn.described()} for drawn in cases],
            },
            seconds=self.exercise.limit_seconds,
        )
        return by_case(outcome, len(cases))

    def _unplanned(self, index: int, planned: Report | Outcome) -> Observation:
        drawn = self.cases[index]
        if isinstance(planned, Outcome):
            return self._observation(drawn, stage="plan", timeout=planned.timeout, death=planned.exit or 9)
        if planned.error:
            return self._observation(drawn, stage="plan", trouble=planned.error)
        return self._observation(drawn, stage="plan", trouble=_returned(planned.trace, self.exercise))

    # -- replaying ---------------------------------------------------------------------------------------

    def _replay(self, source, cases: dict[int, tuple[_Drawn, dict]], blank=None, poison="nan") -> dict[int, Observation]:
        """What the kernels did on the real inputs. A case that kills its process does not take the others along."""
        seen: dict[int, Observation] = {}
        waiting = dict(cases)
        for _ in range(4):
            if not waiting:
                break
            order = list(waiting)
            outcome, slots = self._run_replay(source, [waiting[i] for i in order], blank, poison)
            reports = by_case(outcome, len(order))
            for position, report in reports.items():
                drawn, trace = waiting.pop(order[position])
                seen[order[position]] = self._seen(drawn, trace, report, outcome, slots[position])
            if outcome.timeout or not reports:
                break
        return seen

    def _run_replay(self, source, cases, blank, poison) -> tuple[Outcome, list]:
        blob, slots, described, size = bytearray(), [], [], 0
        for drawn, trace in cases:
            inputs = []
            for argument in drawn.tensors:
                raw = _bytes(argument.values)
                inputs.append(
                    {"shape": list(argument.values.shape), "stride": list(argument.stride),
                     "dtype": _dtype(argument.values), "offset": len(blob), "bytes": len(raw)}  # fmt: skip
                )
                blob += raw + b"\0" * (-len(raw) % 64)
            capacity = drawn.expected.numel() * self._output_dtype(drawn).itemsize
            slots.append((size, capacity))
            described.append({"trace": trace, "inputs": inputs, "slot": [size, capacity]})
            size += capacity + (-capacity % 64)
        request = {"kind": "replay", "source": source, "cases": described, "blank": blank, "poison": poison}
        outcome = self.judge.box.run(request, bytes(blob), size, self.exercise.limit_seconds)
        return outcome, slots

    def _seen(self, drawn, trace, report: Report | Outcome, outcome: Outcome, slot) -> Observation:
        constants = _constants(trace)
        if isinstance(report, Outcome):
            return self._observation(drawn, timeout=report.timeout, death=report.exit or 9, constants=constants)
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

    def _compare(self, drawn: _Drawn, report: Report, output: bytes, slot) -> Comparison:
        offset, capacity = slot
        dtype = self._output_dtype(drawn)
        expected = drawn.expected.double()
        got = torch.zeros(expected.shape, dtype=dtype)
        if capacity:
            got = torch.frombuffer(bytearray(output[offset : offset + capacity]), dtype=dtype).reshape(expected.shape)
        return Comparison(got, expected, self.exercise.bounds[dtype])

    def _again_without_poison(self, index: int, seen: Observation, trace: dict) -> Observation:
        """A wrong result is tried once more with masked-off lanes that read as zero."""
        c = seen.comparison
        if self.on_gpu or c is None or c.right or seen.result.shape != tuple(c.expected.shape):
            return seen
        again = self._replay(self.source, {0: (self.cases[index], trace)}, poison="zero").get(0)
        if again and again.comparison and again.comparison.right and again.result == seen.result:
            return replace(seen, right_without_poison=True)
        return seen

    def _output_dtype(self, drawn: _Drawn) -> torch.dtype:
        return self.exercise.output_dtype or drawn.tensors[0].values.dtype

    def _observation(self, drawn: _Drawn, **seen) -> Observation:
        return Observation(self.exercise, drawn.case, drawn.arguments, self.judge.backend, **seen)

    # -- blanks ------------------------------------------------------------------------------------------

    def _judge_blanks(self) -> dict[str, Finding] | None:
        """The blanks that are wrong, each tried alone in the solution's kernel; None for a restructured kernel."""
        blanks = self.exercise.blanks
        traces = self._traces_of_template()
        wrong: dict[str, Finding] = {}
        for name in blanks.names:
            request = {"template": blanks.template, "kernel": blanks.kernel, "names": list(blanks.names), "name": name}
            cases = {i: (self.cases[i], trace) for i, trace in traces.items()}
            seen = self._replay(self.source, cases, blank=request)
            troubles = [o.trouble for o in seen.values() if o.trouble]
            if any(t.kind == "restructured" for t in troubles):
                return None
            findings = [f for f in map(diagnose, seen.values()) if f]
            if findings or len(seen) < len(cases):
                finding = findings[0] if findings else Finding("crash", "The kernel did not end.")
                wrong[name] = replace(finding, advice=blanks.advice.get(name, finding.advice))
        return wrong

    def _traces_of_template(self) -> dict[int, dict]:
        """What the solution's host function does with our cases; the same for every learner."""
        known = self.judge._template_traces
        if self.exercise.name not in known:
            planned = self._plan(self.exercise.blanks.template, self.cases)
            known[self.exercise.name] = {i: p.trace for i, p in planned.items() if self.cases[i].expected.numel()}
        return known[self.exercise.name]

    # -- autotuning --------------------------------------------------------------------------------------

    def _about_the_space(self, observations: list[Observation]) -> Finding | None:
        return None


def by_case(outcome: Outcome, count: int) -> dict[int, Report | Outcome]:
    """The last report of each case. What ended the process is charged to the first case without a report."""
    reports: dict[int, Report | Outcome] = {}
    for report in outcome.reports:
        if report.case is not None and report.case < count:
            reports.setdefault(report.case, report)
        elif report.error:  # before any case: the module itself failed
            return {i: report for i in range(count)}
    finished = outcome.reports and outcome.reports[-1].done and not outcome.garbled
    missing = [i for i in range(count) if i not in reports]
    if missing and (not finished or outcome.timeout or outcome.exit):
        reports[missing[0]] = outcome
    return reports


def _returned(trace: dict | None, exercise: Exercise) -> Trouble:
    kind = str((trace or {}).get("returned", "nothing"))[:80]
    if kind == "NoneType":
        return Trouble("exception", "NotImplementedError") if not (trace or {}).get("launches") else Trouble(
            "returned-none", "TypeError", f"{exercise.entry} returned None; it has to return the output tensor"
        )
    return Trouble("exception", "TypeError", f"{exercise.entry} returned {kind}, not a tensor")


def _constants(trace: dict) -> tuple[int, ...]:
    """Integers among the launch arguments: block sizes are among them."""
    found = []
    for step in trace.get("steps", ()):
        if isinstance(step, dict) and step.get("op") == "launch" and isinstance(step.get("args"), dict):
            found += [v for v in step["args"].values() if type(v) is int and v >= 2 and v & (v - 1) == 0]
    return tuple(dict.fromkeys(found))[:8]


def _bytes(tensor: torch.Tensor) -> bytes:
    flat = tensor.contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


_KINDS = {"kernel": KernelJudgement, "value": ValueJudgement}
