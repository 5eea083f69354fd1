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

from ..box.wire.answers import Launch, Trace
from ..diagnosis import Observation
from ..exercises.cases import Tag
from ..verdict import Finding, Slug
from .repairs import TOO_MANY, outcomes, right
from .rewrites import OF_KERNELS, OF_STATEMENTS, axes, blocks, nearest, places
from .trials import Drawn, Trials, traces_of
from .written import Written

MOST_TRIED = 400  # changes of an answer
SHARE = 0.25  # of the exercise's time, for these changes: a bound for slow machines, others end at MOST_TRIED
MOST_CONFIRMED = 4
FEW = 16  # elements of a case that may be right by chance
MOST_REWRITTEN = 24  # sources, which the front end reads
SHAPES = "incompatible dimensions"  # what Triton says of blocks that do not fit
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
        changed = {i: (_with(drawn, change, trace), trace) for i, (drawn, trace) in cases.items()}
        well, kept = outcomes(trials, changed, busy)
        if well | kept == cases.keys() and len(kept & set(failing)) <= len(well & set(failing)):
            line, means, advice = written.told(program, change)
            return replace(finding, means=means, advice=advice, line=line, code="", second=None, sure=True)
    return finding


def blames_the_source(
    trials: Trials, observations: list[Observation], findings: list[Finding | None], finding: Finding
) -> Finding:
    """The finding, explained by a change of the source that makes all cases right, if there is one."""
    refused = finding.slug == Slug.COMPILE_ERROR and SHAPES in finding.happened
    if finding.sure or trials.on_gpu or not (refused or finding.slug.rank in OF_A_KERNEL):
        return finding
    few = telling(trials, observations, findings)
    if not few or not trials.judge.seconds_left:
        return finding
    elsewhere = [each for each in OF_KERNELS if finding.line or each not in OF_STATEMENTS]
    for tried in [(axes, blocks), (places,)] if refused else [elsewhere]:
        made = nearest(trials.source, tried, MOST_REWRITTEN, finding.line)
        for source in right_sources(trials, [*made], few)[:MOST_CONFIRMED]:
            if right_sources(trials, [source], trials.cases):
                means, advice = made[source].told(trials.source)
                return replace(
                    finding, line=made[source].line, code="", means=means, advice=advice, second=None, sure=True
                )
    return finding


def telling(trials: Trials, observations: list[Observation], findings: list[Finding | None]) -> list[Drawn]:
    """The failing case that is soonest known, if any fails."""
    failing = [next(d for d in trials.cases if d.case is o.case) for o, f in zip(observations, findings) if f]
    return sorted(failing, key=lambda d: (d.expected.numel() < FEW, d.expected.numel()))[:1]


def right_sources(trials: Trials, sources: list[str], cases: list[Drawn]) -> list[str]:
    """Those of some sources whose results are right in all of these cases."""
    calls = [(n, drawn) for n in range(len(sources)) for drawn in cases]
    traces = traces_of(trials.plan(sources, [drawn for _, drawn in calls], [n for n, _ in calls])) if calls else {}
    seen = right(trials, {i: (calls[i][1], trace) for i, trace in traces.items()})
    wrong = {n for i, (n, _) in enumerate(calls) if i not in seen}
    return [source for n, source in enumerate(sources) if n not in wrong]


def _effort(drawn: Drawn, trace: Trace) -> tuple:
    """Less for a case that rules out much and is quickly tried: no number is 1, which is compiled into the program; few
    elements, in float32."""
    count = drawn.expected.numel()
    given = [each for launch in trace.launches for each in launch.given]
    most = max([count, *(argument.values.numel() for argument in drawn.tensors)])
    return -len(given), count < FEW, Tag.SHORT in drawn.case.about, Tag.HALF in drawn.case.about, most


def _with(drawn: Drawn, change: Change, trace: Trace) -> Drawn:
    return replace(drawn, change=change.data({n: v for launch in trace.launches for n, v in _sizes(launch).items()}))


def _sizes(launch: Launch) -> dict[str, int]:
    """The constants of a launch that are sizes of a block."""
    return {n: v for n, v in launch.constants.items() if type(v) is int and 1 < v < 1 << 20}


def _bounds(change: Change) -> bool:
    """Whether less is accessed after a change: a part ends earlier, or a mask counts from where a step begins."""
    return change.more[:1] == ("minsi",) or change.what == "operand" and change.more[2] == "sub"


def _programs(trials: Trials, trace: Trace) -> list[tuple[Program, Names]]:
    """The programs of a trace's launches, each with its names but for those of the source."""
    found = {}
    for launch in trace.launches:
        if text := trials.programs.get(launch.program):
            labels = [each.label for each in launch.given]
            found[launch.program] = codec.from_data(json.loads(text)), labels, _sizes(launch)
    return list(found.values())


def _tried(trials, programs, written, finding, cases, first, others) -> Iterator[tuple[Program, Change]]:
    """The changes that make some failing cases right, the nearest to what is written first."""
    found: dict[Change, tuple] = {}
    begun = trials.judge.seconds_left
    in_places = finding.slug in PLACES
    for program, labels, sizes in programs:
        names = Names(labels, written.variables, written.loops, sizes)
        near = candidates(program, names, finding.line if in_places else None)
        for place, (distance, of_numbers, change) in enumerate(near):
            if not (in_places and of_numbers) or change.what == "other":
                far = abs(change.line - finding.line) if finding.line else 0
                if finding.slug in TOO_MANY and (change.what == "skip" or _bounds(change)):
                    distance = -1 - (change.what == "skip")  # one operation less is nearer than one more
                found.setdefault(change, (distance + 2 * (not of_numbers), far, place, program))
    changes, left = sorted(found, key=lambda change: found[change][:3]), MOST_TRIED  # the programs take turns
    for _, group in groupby(changes, key=lambda change: found[change][0]):
        tried = list(group)[:left]
        left -= len(tried)
        for i in (first, *others):
            drawn, trace = cases[i]
            again = {n: (_with(drawn, each, trace), trace) for n, each in enumerate(tried)}
            share = SHARE - (begun - trials.judge.seconds_left) / trials.exercise.limit_seconds
            share = share if i == first else max(share, SHARE / 4)
            tried = [tried[n] for n in sorted(right(trials, again, share=share))] if share > 0 else []
            if not tried:
                break
        yield from ((found[each][-1], each) for each in tried[:MOST_CONFIRMED])
