"""Judges exercises whose function takes and returns plain numbers."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass, replace

from ..box.wire import Report, Trouble
from ..box.wire.requests import Device, Plain, ValueCase, ValueRequest
from ..diagnosis import Observation, diagnose
from ..exercises.spec import Exercise
from ..verdict import CaseResult, Finding, Verdict


class ValueJudgement:
    """One answer to an exercise of kind "value": the box calls the function, the judge compares the numbers."""

    def __init__(self, judge, exercise: Exercise, source: str, seed: int):
        self.judge, self.exercise, self.source = judge, exercise, source
        self.arguments = [case.make(None) for case in exercise.cases]

    def verdict(self) -> Verdict:
        cases = tuple(ValueCase(tuple(map(_described, arguments))) for arguments in self.arguments)
        outcome = self.judge.run(self.exercise, ValueRequest(self.source, self.exercise.entry, cases))
        reports = outcome.by_case(len(self.exercise.cases))
        findings = [self._finding(i, reports[i]) for i in range(len(self.exercise.cases)) if i in reports]
        finding = self._one_mistake(reports) or next((f for f in findings if f), None)
        passed = finding is None and len(findings) == len(self.exercise.cases)
        return Verdict(
            exercise=self.exercise.name,
            passed=passed,
            score=self.exercise.points if passed else 0,
            points=self.exercise.points,
            backend=self.judge.backend,
            finding=finding,
            cases=tuple(CaseResult(c.name, f) for c, f in zip(self.exercise.cases, findings)),
        )

    def _finding(self, index: int, report) -> Finding | None:
        case = self.exercise.cases[index]
        observe = {"exercise": self.exercise, "case": case, "arguments": (), "backend": self.judge.backend}
        if not isinstance(report, Report):
            return diagnose(Observation(**observe, stage="plan", exceeded=report.exceeded, death=report.death))
        if report.error:
            return diagnose(Observation(**observe, stage="plan", trouble=report.error))
        if not report.has_value:
            return diagnose(Observation(**observe, trouble=Trouble("exception", message="no value came back")))
        if report.value is None or report.value is ...:
            return Finding("not-attempted", f"{self.exercise.entry} returned None.", advice="return the answer.")
        if isinstance(report.value, dict) and "not a plain value" in report.value:
            kind = report.value["not a plain value"]
            return Finding("wrong-value", f"{self.exercise.entry} returned a {kind}.", advice="return plain numbers.")
        if self.exercise.accept:
            return self.exercise.accept(report.value)
        expected = self.exercise.reference(*self.arguments[index])
        return None if same(report.value, expected) else self._wrong(index, report.value, expected)

    def _wrong(self, index: int, got, expected) -> Finding:
        happened = f"{_difference(got, expected)} ({self.exercise.cases[index].name})."
        if advice := _other_form(got, expected):
            return Finding("wrong-value", happened, advice=advice)
        got, expected, *computed = _where_they_differ(
            got, expected, *(mistake.compute(*self.arguments[index]) for mistake in self.exercise.mistakes)
        )
        for mistake, value in zip(self.exercise.mistakes, computed, strict=True):
            if same(got, value) and not same(value, expected):
                return Finding(mistake.slug, happened, mistake.explanation, _lower(mistake.advice))
        return Finding("wrong-value", happened, advice="calculate this case by hand, step by step.")

    def _one_mistake(self, reports) -> Finding | None:
        """The known mistake that explains every case, reported for the first case that is wrong."""
        values = {i: r.value for i, r in reports.items() if isinstance(r, Report) and r.has_value}
        if self.exercise.accept or len(values) < len(self.exercise.cases):
            return None
        wrong = [i for i, got in values.items() if not same(got, self.exercise.reference(*self.arguments[i]))]
        for mistake in self.exercise.mistakes:
            if wrong and all(same(got, mistake.compute(*self.arguments[i])) for i, got in values.items()):
                finding = self._wrong(wrong[0], values[wrong[0]], self.exercise.reference(*self.arguments[wrong[0]]))
                return replace(finding, means=mistake.explanation, advice=_lower(mistake.advice), slug=mistake.slug)
        return None


def _described(argument) -> Plain | Device:
    """An argument for the box. A device is sent as its fields."""
    return Device(asdict(argument)) if is_dataclass(argument) else Plain(argument)


def same(got, expected) -> bool:
    """Equality of plain values: 4.0 equals 4, True is not a number, and a dict must have the expected keys."""
    if isinstance(expected, dict):
        return isinstance(got, dict) and set(got) == set(expected) and all(same(got[k], expected[k]) for k in expected)
    if type(got) not in (int, float) or got != got:
        return False
    return got == expected


def _other_form(got, expected) -> str:
    """Advice if the value is not a number, or not a dict with the right keys; otherwise empty."""
    if isinstance(expected, dict):
        right = isinstance(got, dict) and set(got) == set(expected)
        return "" if right else f"return a dict with the keys {', '.join(expected)}."
    return "" if type(got) in (int, float) else "return one number."


def _where_they_differ(got, expected, *others) -> tuple:
    """The values at the first key that differs, if they are dicts; otherwise the values themselves."""
    if not isinstance(expected, dict):
        return got, expected, *others
    key = next(k for k in expected if not same(got[k], expected[k]))
    return tuple(value[key] for value in (got, expected, *others))


def _difference(got, expected) -> str:
    if isinstance(expected, dict) and not isinstance(got, dict):
        return f"The answer is {_short(got)}, not a dict"
    if isinstance(expected, dict):
        missing = [k for k in expected if k not in got]
        if missing:
            return f"The answer has no {missing[0]!r}; it has {', '.join(map(repr, got)) or 'nothing'}"
        surplus = [k for k in got if k not in expected]
        if surplus:
            return f"The answer has an unexpected key, {surplus[0]!r}"
        key = next(k for k in expected if not same(got[k], expected[k]))
        return f"{key} is {_short(got[key])}, expected {_short(expected[key])}"
    return f"The answer is {_short(got)}, expected {_short(expected)}"


def _short(value) -> str:
    if type(value) is int:
        return f"{value:,}"
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
