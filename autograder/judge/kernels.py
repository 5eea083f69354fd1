"""Exercises whose function takes tensors and launches Triton kernels."""

from __future__ import annotations

from ..diagnosis import diagnose, error_map, overall
from ..exercises.spec import Exercise
from ..verdict import CaseResult, Finding, Verdict, quoted
from . import compiling, large
from .autotuning import about_autotuning, about_idle_programs, about_the_grid
from .blanks import tells, with_blanks, wrong_blanks
from .launched import types
from .trials import Trials
from .tuned_constants import about_the_constants

NOT_ONE_BY_ONE = "The blanks are not judged one by one: the kernel was not launched, or is not the starter's."
AROUND_THEM = "All blanks are right: the mistake is in a line around them, in the kernel or where it is launched."


class KernelJudgement:
    """One answer to an exercise of kind "kernel"."""

    def __init__(self, judge, exercise: Exercise, source: str, seed: int):
        self.judge, self.exercise, self.source = judge, exercise, source
        self.trials = Trials(judge, exercise, source, seed)

    def verdict(self) -> Verdict:
        observations = self.trials.observe()
        findings = [diagnose(o) for o in observations]
        traces = list(self.trials.traces.values())
        self.judge.launchers = types(traces)
        finding = overall(observations, findings) or compiling.refusal(
            self.judge, self.exercise, self.source, self.trials.programs, traces
        )
        finding = finding or large.finding(self.judge, self.exercise, self.source, self.trials.seed)
        if self.exercise.timing_cases and finding:
            finding = about_the_grid(self.trials, finding)
        elif self.exercise.timing_cases:
            finding = about_autotuning(self.trials) or about_the_constants(self.trials)
        refused = {o.trouble.kernel for o in observations if o.trouble}
        blank_findings = None if finding is None else self._wrong_blanks(refused)
        if blank_findings is not None:
            finding = with_blanks(finding, self.exercise.blanks, blank_findings)
        note = ""
        if finding is None:
            note = self.exercise.remark(self.source, traces)
            note = note or (about_idle_programs(self.trials) if self.exercise.timing_cases else "")
        elif self.exercise.blanks and blank_findings is None:
            note = NOT_ONE_BY_ONE
        elif blank_findings == {} and any(f and tells(o.case.about) for o, f in zip(observations, findings)):
            note = AROUND_THEM
        return Verdict(
            exercise=self.exercise.name,
            passed=finding is None,
            score=self._score(finding, blank_findings),
            points=self.exercise.points,
            backend=self.judge.backend,
            finding=quoted(finding, self.source),
            cases=tuple(
                CaseResult(o.case.name, quoted(f, self.source), error_map(o) if f else None)
                for o, f in zip(observations, findings)
            ),
            blanks=self._blanks(finding, blank_findings),
            blank_findings=blank_findings or {},
            note=note,
        )

    def _wrong_blanks(self, refused: set[str]) -> dict[str, Finding] | None:
        """The blanks that are wrong; None if they cannot be judged one by one. refused: kernels whose launch failed."""
        blanks = self.exercise.blanks
        if not blanks or blanks.kernel not in self.trials.launched | refused:
            return None
        return wrong_blanks(self.trials)

    def _blanks(self, finding: Finding | None, wrong: dict[str, Finding] | None) -> dict[str, bool]:
        names = self.exercise.blanks.names if self.exercise.blanks else ()
        return {name: finding is None if wrong is None else name not in wrong for name in names}

    def _score(self, finding: Finding | None, wrong: dict[str, Finding] | None) -> float:
        if finding is None:
            return self.exercise.points
        if wrong is None:
            return 0
        names = self.exercise.blanks.names
        # every blank may be right and the whole still wrong: that is not full marks
        return self.exercise.points * min(len(names) - len(wrong), len(names) - 1) / len(names)
