"""Whether one operation of a kernel is to blame: a wrong answer's programs are replayed with one small change.

If a change makes every case right, the message names the learner's line. See `repairs` for changes of a launch, and
`workshop.executor.changes` for what is changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from workshop.executor import codec
from workshop.executor.changes import Change, Names, candidates
from workshop.executor.program import Program

from ..box.wire.answers import Trace
from ..diagnosis import Observation
from ..exercises.cases import Tag
from ..verdict import Finding, Slug
from .repairs import SHARE, right
from .trials import Drawn, Trials
from .written import Written

MOST_TRIED = 200  # changes of an answer
MOST_CONFIRMED = 4
# Names of what only wrong places cause. Elsewhere changes of numbers come first.
PLACES = {slug for slug in Slug if Slug.WRONG_PROGRAM_ID.rank <= slug.rank <= Slug.RELIES_ON_MASKED_LANES.rank} | {
    Slug.STRIDE_IGNORED
}
OF_A_KERNEL = range(Slug.WRONG_PROGRAM_ID.rank, Slug.SAME_MASK.rank)


def blames_the_kernel(
    trials: Trials, observations: list[Observation], findings: list[Finding | None], finding: Finding
) -> Finding:
    """The finding, explained by the change of one operation that makes all cases right, if there is one."""
    if finding.sure or trials.on_gpu or finding.slug.rank not in OF_A_KERNEL or not trials.judge.seconds_left:
        return finding
    wrong = {id(o.case) for o, f in zip(observations, findings, strict=True) if f}
    cases = {i: (trials.cases[i], trace) for i, trace in trials.traces.items() if trace.launches}
    idle = {id(o.case) for o in observations if o.evidence.without_work}
    busy = {i for i, (drawn, _) in cases.items() if id(drawn.case) not in idle}
    failing = [i for i, (drawn, _) in cases.items() if id(drawn.case) in wrong]
    if not failing:
        return finding
    first, *others = sorted(failing, key=lambda i: _effort(*cases[i]))
    try:
        written, programs = Written(trials.source), _programs(trials, cases[first][1])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return finding
    for program, change in _tried(trials, programs, written, finding, cases, first, others[:2]):
        changed = {i: (replace(drawn, change=change.data), trace) for i, (drawn, trace) in cases.items()}
        if right(trials, changed, unchanged=cases.keys() - set(failing), busy=busy) == cases.keys():
            line, means, advice = written.told(program, change)
            return replace(finding, means=means, advice=advice, line=line, code="", second=None, sure=True)
    return finding


def _effort(drawn: Drawn, trace: Trace) -> tuple:
    """Less for a case that rules out much and is quickly tried: no number is 1, which is compiled into the program; few
    elements, in float32."""
    count = drawn.expected.numel()
    given = [each for launch in trace.launches for each in launch.given]
    most = max([count, *(argument.values.numel() for argument in drawn.tensors)])
    return -len(given), count < 48, Tag.SHORT in drawn.case.about, Tag.HALF in drawn.case.about, most


def _programs(trials: Trials, trace: Trace) -> list[tuple[Program, Names]]:
    """The programs of a trace's launches, each with its names but for those of the source."""
    found = {}
    for launch in trace.launches:
        if text := trials.programs.get(launch.program):
            labels = [each.label for each in launch.given]
            sizes = {n: v for n, v in launch.constants.items() if type(v) is int and 1 < v < 1 << 20}
            found[launch.program] = codec.from_data(json.loads(text)), labels, sizes
    return list(found.values())


def _tried(trials, programs, written, finding, cases, first, others) -> Iterator[tuple[Program, Change]]:
    """The changes that make some failing cases right, the nearest to what is written first."""
    found: dict[Change, tuple] = {}
    begun = trials.judge.seconds_left
    in_places = finding.slug in PLACES
    for program, labels, sizes in programs:
        names = Names(labels, written.variables, written.loops, sizes)
        for distance, of_numbers, change in candidates(program, names):
            if not (in_places and of_numbers) or change.what == "other":
                far = abs(change.line - finding.line) if finding.line else 0
                found.setdefault(change, (distance + 2 * (not of_numbers), far, program))
    changes, left = sorted(found, key=lambda change: found[change][:2]), MOST_TRIED
    for _, group in groupby(changes, key=lambda change: found[change][0]):
        tried = list(group)[:left]
        left -= len(tried)
        for i in (first, *others):
            drawn, trace = cases[i]
            again = {n: (replace(drawn, change=each.data), trace) for n, each in enumerate(tried)}
            share = SHARE - (begun - trials.judge.seconds_left) / trials.exercise.limit_seconds
            tried = [tried[n] for n in sorted(right(trials, again, share=share))] if share > 0 else []
            if not tried:
                break
        yield from ((found[each][2], each) for each in tried[:MOST_CONFIRMED])
