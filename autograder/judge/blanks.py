"""Blanks: each expression that a learner filled in is tried alone, in the solution's kernel."""

from __future__ import annotations

from dataclasses import replace

from ..box.wire import Report
from ..diagnosis import Observation, diagnose
from ..exercises.spec import Blanks, Tag
from ..verdict import Finding, Slug
from .trials import Trials

# Blanks are judged on the cases that tell them apart. Precision and extreme values are judged on the whole kernel.
TELLING = {Tag.RAGGED, Tag.ASCENDING, Tag.DESCENDING, Tag.NEGATIVE, Tag.STRIDED}
REPEATING = {Tag.HALF, Tag.SHORT, Tag.HUGE, Tag.MANY, Tag.MASKED, Tag.FAR, Tag.DRAWN, Tag.AGAIN}
_NOT_TRIED = Finding("timeout", "This blank was not tried: the others used up the time of the answer.")


def wrong_blanks(trials: Trials, traces: dict[int, dict]) -> dict[str, Finding] | None:
    """The blanks that are wrong, with what is wrong; None for a kernel that is not the starter's any more.

    traces: what the template's host function does with the telling cases, by their numbers.
    """
    blanks = trials.exercise.blanks
    # a fault ends a GPU's context: there each blank has a process of its own
    groups = [[name] for name in blanks.names] if trials.on_gpu else [list(blanks.names)]
    seen: dict[tuple[str, int], Observation] = {}
    for names in groups:
        cases = {(name, i): (trials.cases[i], traces[i]) for name in names for i in traces}
        seen |= trials.replay_blanks(trials.source, cases, blanks)
    if any(o.trouble and o.trouble.kind == "restructured" for o in seen.values()):
        return None
    wrong: dict[str, Finding] = {}
    for name in blanks.names:
        found = [diagnose(seen[name, i]) for i in traces if (name, i) in seen]
        finding = next((f for f in found if f), None if len(found) == len(traces) else _NOT_TRIED)
        if finding:
            wrong[name] = replace(finding, advice=blanks.advice.get(name, finding.advice))
    return wrong


class TemplateTraces:
    """What the solution's host function does with the telling cases: the same for every answer.

    They are planned in the judge's own time, and kept only if they are complete. So no answer changes the next one's.
    """

    def __init__(self):
        self._known: dict[str, tuple[tuple, dict[int, dict]]] = {}  # by exercise: the cases as planned, their traces

    def of(self, trials: Trials) -> dict[int, dict] | None:
        """By the numbers of the telling cases of `trials`; None if they could not be planned."""
        exercise = trials.exercise
        telling = [i for i, drawn in enumerate(trials.cases) if tells(drawn.case.about)]
        cases = tuple(trials.cases[i].described() for i in telling)
        known, traces = self._known.get(exercise.name, (None, None))
        if known == cases:
            return traces
        with trials.judge.own_time(exercise):
            planned = trials.plan(exercise.blanks.template, [trials.cases[i] for i in telling])
        reports = [planned.get(position) for position in range(len(telling))]
        if not all(isinstance(report, Report) and "steps" in (report.trace or {}) for report in reports):
            return None
        traces = {i: report.trace for i, report in zip(telling, reports)}
        self._known[exercise.name] = cases, traces
        return traces


def tells(about: set[Tag]) -> bool:
    """Whether a case with these tags is one of those on which each blank is judged."""
    return bool(about & TELLING) and not about & REPEATING


def with_blanks(finding: Finding, blanks: Blanks, wrong: dict[str, Finding]) -> Finding:
    """Where one blank alone is wrong, it names the mistake that the numbers do not tell."""
    name = next(iter(wrong), None)
    slug = blanks.slugs.get(name)
    if len(wrong) != 1 or not slug or finding.slug not in (Slug.NAN, Slug.WRONG_VALUE):
        return finding
    advice = blanks.advice[name]
    advice = advice[0].lower() + advice[1:]
    return replace(finding, slug=slug, means=f"All blanks but {name} are right.", advice=advice)
