"""Blanks: each expression that a learner filled in is tried alone, in the solution's kernel."""

from __future__ import annotations

from dataclasses import replace

from ..diagnosis import Observation, diagnose
from ..exercises.cases import Tag
from ..exercises.spec import Blanks
from ..verdict import Finding, Slug
from .spliced import Restructured, spliced
from .trials import Trials, traces_of

# Blanks are judged on the cases that tell them apart. Precision and extreme values are judged on the whole kernel.
TELLING = {Tag.RAGGED, Tag.ASCENDING, Tag.DESCENDING, Tag.NEGATIVE, Tag.STRIDED}
REPEATING = {Tag.HALF, Tag.SHORT, Tag.HUGE, Tag.MANY, Tag.MASKED, Tag.FAR, Tag.SPECIAL, Tag.AGAIN}
_NOT_TRIED = Finding("timeout", "This blank was not tried: the others used up the time of the answer.")


def wrong_blanks(trials: Trials) -> dict[str, Finding] | None:
    """The blanks that are wrong, with what is wrong; None for a kernel that is not the starter's any more."""
    blanks = trials.exercise.blanks
    try:
        modules = spliced(trials.source, blanks)
    except Restructured:
        return None
    telling, names = [drawn for drawn in trials.cases if tells(drawn.case.about)], list(modules)
    keys = [(name, i) for name in names for i in range(len(telling))]
    if not keys:
        return {}
    order = list(modules.values())
    plans = trials.plan(order, [telling[i] for _, i in keys], [names.index(name) for name, _ in keys])
    traces = traces_of(plans)
    seen: dict[tuple[str, int], Observation] = {
        keys[n]: trials.unplanned(telling[keys[n][1]], plan, True) for n, plan in plans.items() if n not in traces
    }
    cases = {keys[n]: (telling[keys[n][1]], trace) for n, trace in traces.items()}
    # a fault ends a GPU's context: there each blank has a process of its own
    groups = [[name] for name in names] if trials.on_gpu else [names]
    for group in groups:
        seen |= trials.replay_blanks({key: case for key, case in cases.items() if key[0] in group})
    wrong: dict[str, Finding] = {}
    for name in names:
        found = [diagnose(seen[name, i]) for i in range(len(telling)) if (name, i) in seen]
        finding = next((f for f in found if f), None if len(found) == len(telling) else _NOT_TRIED)
        if finding:
            wrong[name] = replace(finding, advice=blanks.advice.get(name, finding.advice))
    return wrong


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
