"""Exercises whose function takes tensors and launches Triton kernels."""

from __future__ import annotations

from dataclasses import replace

from ..diagnosis import diagnose, overall
from ..exercises.spec import Exercise
from ..verdict import CaseResult, Finding, Verdict
from .autotuning import about_autotuning
from .blanks import traces_of_template, with_blanks, wrong_blanks
from .trials import Trials

NOT_ONE_BY_ONE = "The blanks are not judged one by one: the kernel was not launched, or is not the starter's."


class KernelJudgement:
    """One answer to an exercise of kind "kernel"."""

    def __init__(self, judge, exercise: Exercise, source: str, seed: int):
        self.judge, self.exercise, self.source = judge, exercise, source
        self.trials = Trials(judge, exercise, source, seed)

    def verdict(self) -> Verdict:
        observations = self.trials.observe()
        findings = [diagnose(o) for o in observations]
        finding = overall(observations, findings)
        if finding is None and self.exercise.timing_cases:
            finding = about_autotuning(self.trials)
        passed = finding is None
        exercise = self.exercise
        score, blanks, blank_findings = (exercise.points if passed else 0), {}, None
        note = next((o.evidence.unchecked for o in observations if o.evidence.unchecked), "")
        if exercise.blanks:
            blanks = dict.fromkeys(exercise.blanks.names, passed)
            if not passed and exercise.blanks.kernel in self.trials.launched:
                blank_findings = wrong_blanks(self.trials, self._template_traces())
            if blank_findings is not None:
                blanks = {name: name not in blank_findings for name in exercise.blanks.names}
                # every blank may be right and the whole still wrong: that is not full marks
                score = exercise.points * min(sum(blanks.values()), len(blanks) - 1) / len(blanks)
                finding = with_blanks(finding, exercise.blanks, blank_findings)
            elif not passed:
                note = note or NOT_ONE_BY_ONE
        return Verdict(
            exercise=exercise.name,
            passed=passed,
            score=score,
            points=exercise.points,
            backend=self.judge.backend,
            finding=self._quoted(finding),
            cases=tuple(CaseResult(o.case.name, self._quoted(f)) for o, f in zip(observations, findings)),
            blanks=blanks,
            blank_findings=blank_findings or {},
            note=note,
        )

    def _template_traces(self) -> dict[int, dict]:
        known = self.judge.template_traces
        if self.exercise.name not in known:
            known[self.exercise.name] = traces_of_template(self.trials)
        return known[self.exercise.name]

    def _quoted(self, finding: Finding | None) -> Finding | None:
        """With the line as the learner wrote it; the box has seen the clean copy."""
        lines = self.source.splitlines()
        if finding is None or not finding.line or finding.line > len(lines):
            return finding
        return replace(finding, code=lines[finding.line - 1].strip()[:200])
