"""Judges exercises whose function takes and returns plain numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, is_dataclass, replace
from functools import cached_property

import torch

from ..answer import is_starter
from ..box.wire import Report, Trouble, ValueCase, ValueRequest
from ..diagnosis import Observation, diagnose, in_common
from ..exercises.spec import Exercise, Mistake
from ..verdict import CaseResult, Finding, Verdict
from .differences import blames_a_difference
from .trials import verdict_of

SHARE = 0.1  # of the exercise's time, for sources without a difference


class ValueJudgement:
    """One answer to an exercise of kind "value": the box calls the function, the judge compares the numbers."""

    def __init__(self, judge, exercise: Exercise, source: str, seed: int):
        self.judge, self.exercise, self.source = judge, exercise, source
        generator = torch.Generator().manual_seed(seed)
        self.cases = exercise.cases_of(generator)
        if len(self.cases) == 1:  # it has no arguments
            self.cases += (replace(self.cases[0], name=f"{self.cases[0].name}, called again"),)
        self.arguments = [case.make(generator) for case in self.cases]
        self._names: tuple[str, ...] = exercise.inputs.outputs if exercise.inputs else ()
        self.values = {}  # what the function returned, by the index of the case

    def verdict(self) -> Verdict:
        reports = self._called([self.source], [(0, i) for i in range(len(self.cases))])
        self.values = {i: r.value for i, r in reports.items() if isinstance(r, Report) and r.has_value}
        findings = [self._finding(i, reports[i]) for i in range(len(self.cases)) if i in reports]
        finding = next((f for f in findings if f), None)
        if finding is None and len(findings) < len(self.cases):
            raise RuntimeError("a case was not judged")
        if finding and not self.exercise.accept:
            finding = replace(finding, means=f"{finding.means} {self._only_where(findings)}".strip())
        told = not self.exercise.accept and not self.exercise.untold  # compared with numbers that may be told
        if finding and told and not is_starter(self.source, self.exercise.starter, self.exercise.entry):
            known = replace(finding, sure=bool(finding.means))
            finding = blames_a_difference(self.exercise.name, self.source, known, self._right_sources, bool)
        note = "" if finding else self._remark(reports)
        return verdict_of(self, finding, (CaseResult(c.name, f) for c, f in zip(self.cases, findings)), note=note)

    def _right_sources(self, sources: list[str]) -> list[str]:
        """Those of some sources that are right in all cases."""
        calls = [(n, i) for n in range(len(sources)) for i in range(len(self.cases))]
        reports = self._called(sources, calls, SHARE)
        values = {calls[n]: r.value for n, r in reports.items() if isinstance(r, Report) and r.has_value}
        right = {call for call, value in values.items() if same(value, self._reference(call[1]))}
        return [source for n, source in enumerate(sources) if all((n, i) in right for i in range(len(self.cases)))]

    def _called(self, sources: list[str], calls: list[tuple[int, int]], share: float = 1.0) -> dict:
        """What came of calls, each of the function of one source with the arguments of one case."""
        cases = tuple(
            ValueCase(
                tuple(asdict(a) if is_dataclass(a) else a for a in self.arguments[i]),
                source,
                devices=tuple(n for n, a in enumerate(self.arguments[i]) if is_dataclass(a)),
            )
            for source, i in calls
        )
        outcome = self.judge.run(self.exercise, ValueRequest(tuple(sources), self.exercise.entry, cases), share=share)
        return {
            i: replace(r, value=_keyed(r.value, self._names)) if isinstance(r, Report) and r.has_value else r
            for i, r in outcome.by_case(len(cases)).items()
        }

    def _reference(self, index: int):
        return _keyed(self.exercise.reference(*self.arguments[index]), self._names)

    def _mistaken(self, mistake, index: int):
        return _keyed(mistake.compute(*self.arguments[index]), self._names)

    def _remark(self, reports) -> str:
        """About a right answer: a float where a whole number is meant."""
        values = [r.value for r in reports.values()]
        numbers = [n for v in values for n in (v.values() if isinstance(v, dict) else [v])]
        found = next((n for n in numbers if type(n) is float), None)
        if found is None or self.exercise.accept:
            return ""
        return f"Right, but {found} is a float, and this counts whole things: // divides without leaving the integers."

    def _finding(self, index: int, report) -> Finding | None:
        case = self.cases[index]
        observe = {"exercise": self.exercise, "case": case, "arguments": (), "backend": self.judge.backend}
        if not isinstance(report, Report):
            found = diagnose(Observation(**observe, stage="plan", exceeded=report.exceeded, death=report.death))
            if found.slug == "timeout":  # what else it says is about kernels, and here is none
                means = "A loop that never reaches its end runs forever."
                return replace(found, means=means, advice="check that every loop advances towards its end.")
            return found
        if report.error:
            return diagnose(Observation(**observe, stage="plan", trouble=report.error))
        if not report.has_value:
            return diagnose(Observation(**observe, trouble=Trouble("exception", message="no value came back")))
        if report.value is None:
            return Finding("not-attempted", f"{self.exercise.entry} returned None.", advice="return the answer.")
        if kind := _no_plain_value(report.value):
            if kind == "ellipsis":
                return Finding("not-attempted", "There is still a ... in the result.", advice="write a number there.")
            where = "returned a" if "not a plain value" in report.value else "returned something that holds a"
            advice = f"return plain numbers: {self.exercise.signature}."
            return Finding("wrong-dtype", f"{self.exercise.entry} {where} {kind}.", advice=advice)
        if self.exercise.accept:
            return self.exercise.accept(report.value)
        expected = self._reference(index)
        return None if same(report.value, expected) else self._wrong(index, report.value, expected)

    def _wrong(self, index: int, got, expected) -> Finding:
        difference = _difference(got, expected, self.exercise.untold)
        happened = f"{difference} ({self.cases[index].name})."
        if advice := _other_form(got, expected, self._names):
            # several values for one, or one for several, have another shape; a text or a truth value has another type
            slug = "wrong-shape" if type(got) in (int, float, list, dict) else "wrong-dtype"
            both = isinstance(got, dict) and isinstance(expected, dict)
            return Finding("wrong-value" if both else slug, happened, advice=advice)
        likely = self._likely_mistakes
        computed = (self._mistaken(mistake, index) for mistake in likely)
        key, got, expected, *computed = _where_they_differ(got, expected, *computed)
        if type(got) not in (int, float):
            return Finding("wrong-dtype", happened, advice="return numbers.")
        for mistake, value in zip(likely, computed, strict=True):
            if same(got, value) and value != expected:
                return Finding(mistake.slug, happened, mistake.explanation, _lower(mistake.advice))
        means, advice = "", "calculate this case by hand, step by step."
        if self.exercise.explain and type(got) in (int, float):
            means, advice = self.exercise.explain(self.arguments[index], key, got, expected)
        if type(got) is float and type(expected) is int:
            means = f"{means} {got!r} is a float: / keeps the fraction of each step, and // rounds down.".strip()
        return Finding("wrong-value", happened, means, advice)

    def _only_where(self, findings: list[Finding | None]) -> str:
        """A sentence about a value that several failing cases share, and few passing ones; "" if there is none."""
        failing, passing = [], []
        for found, arguments in zip(findings, self.arguments):
            (failing if found else passing).append(list(_facts(self.exercise.parameters, arguments)))
        return in_common(failing, passing) if len(failing) > 1 else ""

    @cached_property
    def _likely_mistakes(self) -> list[Mistake]:
        """Those that explain most of what is wrong, and would make nothing wrong that is right; that with most cases
        first. By chance a mistake gives the same number in one case."""
        votes = [(self._votes(mistake), mistake) for mistake in self.exercise.mistakes]
        return [mistake for of, mistake in sorted(votes, key=lambda each: -each[0]) if of > 0]

    def _votes(self, mistake: Mistake) -> int:
        """How many more wrong cases the mistake explains than it leaves; 0 if it would make a right one wrong."""
        balance = 0
        for index, got in self.values.items():
            expected, mistaken = self._reference(index), self._mistaken(mistake, index)
            if same(got, expected):
                if mistaken != expected:
                    return 0
                continue
            if isinstance(expected, dict) and _other_form(got, expected) == "":
                _, got, expected, mistaken = _where_they_differ(got, expected, mistaken)
            balance += 1 if same(got, mistaken) else -1
        return balance


def _facts(names: Sequence[str], arguments: Sequence) -> Iterator[str]:
    """Each argument in words. Of a device, each of its fields."""
    for name, value in zip(names, arguments, strict=False):
        fields = asdict(value) if is_dataclass(value) else {"": value}
        yield from (f"{name}.{field}".strip(".") + f" is {value}" for field, value in fields.items())


def _keyed(value, names: tuple[str, ...]):
    """Several values as a dict by their names; anything else as it is."""
    several = names and isinstance(value, (list, tuple)) and len(value) == len(names)
    return dict(zip(names, value)) if several else value


def same(got, expected) -> bool:
    """Equality of plain values: 4.0 equals 4, True is not a number, and a dict must have the expected keys."""
    if isinstance(expected, dict):
        return isinstance(got, dict) and set(got) == set(expected) and all(same(got[k], expected[k]) for k in expected)
    if type(got) not in (int, float) or got != got:
        return False
    return got == expected


def _no_plain_value(value) -> str:
    """The type of the first part that the box could not send; empty if there is none."""
    if not isinstance(value, (dict, list)):
        return ""
    if isinstance(value, dict) and "not a plain value" in value:
        return str(value["not a plain value"])
    parts = value.values() if isinstance(value, dict) else value
    return next(filter(None, map(_no_plain_value, parts)), "")


def _other_form(got, expected, names: tuple[str, ...] = ()) -> str:
    """Advice if the value is not a number, not as many as there are names, or not a dict with the right keys."""
    if isinstance(expected, dict):
        right = isinstance(got, dict) and set(got) == set(expected)
        form = f"{len(names)} numbers:" if names else "a dict with the keys"
        return "" if right else f"return {form} {', '.join(expected)}."
    return "" if type(got) in (int, float) else "return one number."


def _where_they_differ(got, expected, *others) -> tuple:
    """The first key that differs, and the values there, if they are dicts; otherwise None and the values themselves."""
    if not isinstance(expected, dict):
        return None, got, expected, *others
    key = next(k for k in expected if not same(got[k], expected[k]))
    return key, *(value[key] for value in (got, expected, *others))


def _difference(got, expected, untold: bool = False) -> str:
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
        if untold:
            right = [k for k in expected if same(got[k], expected[k])]
            others = f"; right: {', '.join(right)}" if right else ""
            return f"{key} is not {_short(got[key])}{others}"
        return f"{key} is {_short(got[key])}, expected {_short(expected[key])}"
    return f"The answer is {_short(got)}, expected {_short(expected)}"


def _short(value) -> str:
    if type(value) is int:
        return f"{value:,}"
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
