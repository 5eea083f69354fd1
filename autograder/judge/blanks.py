"""Blanks: each expression that a learner filled in is tried alone, in the solution's kernel."""

from __future__ import annotations

from dataclasses import replace

from ..diagnosis import Observation, diagnose
from ..exercises.spec import Blanks, Tag
from ..verdict import Finding, Slug
from .trials import Trials

# Blanks are judged on the cases that tell them apart. Precision and extreme values are judged on the whole kernel.
TELLING = {Tag.RAGGED, Tag.ASCENDING, Tag.DESCENDING, Tag.NEGATIVE, Tag.STRIDED}
REPEATING = {Tag.HALF, Tag.SHORT, Tag.HUGE, Tag.MANY, Tag.MASKED, Tag.DRAWN}
_NOT_REACHED = Finding("crash", "The kernel did not end.")


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
        seen |= trials.replay(trials.source, cases, template=blanks)
    if any(o.trouble and o.trouble.kind == "restructured" for o in seen.values()):
        return None
    wrong: dict[str, Finding] = {}
    for name in blanks.names:
        findings = [diagnose(seen[name, i]) if (name, i) in seen else _NOT_REACHED for i in traces]
        if finding := next((f for f in findings if f), None):
            wrong[name] = replace(finding, advice=blanks.advice.get(name, finding.advice))
    return wrong


def traces_of_template(trials: Trials) -> dict[int, dict]:
    """What the solution's host function does with the telling cases; the same for every learner."""
    planned = trials.plan(trials.exercise.blanks.template, trials.cases)
    about = {i: trials.cases[i].case.about for i in planned}
    return {i: planned[i].trace for i, tags in about.items() if tags & TELLING and not tags & REPEATING}


def with_blanks(finding: Finding, blanks: Blanks, wrong: dict[str, Finding]) -> Finding:
    """Where one blank alone is wrong, it names the mistake that the numbers do not tell."""
    name = next(iter(wrong), None)
    slug = blanks.slugs.get(name)
    if len(wrong) != 1 or not slug or finding.slug not in (Slug.NAN, Slug.WRONG_VALUE):
        return finding
    advice = blanks.advice[name]
    advice = advice[0].lower() + advice[1:]
    return replace(finding, slug=slug, means=f"All blanks but {name} are right.", advice=advice)
