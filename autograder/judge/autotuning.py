"""Checks that a space of configurations is sensible, and that the key leads to a good choice in it.

The first two checks read the trace of the answer's launches, on any machine: with another value of a constant of the
space, a kernel must be another program. The third one measures on a GPU: our own process times every configuration at
two sizes. If the key is the same for both sizes, the autotuner keeps the choice that it made for the small size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from ..box.wire import Launch, ProgramRequest, Trace, TuneCase
from ..verdict import Finding, Slug
from .trials import MAX_CONFIGURATIONS, Drawn, Trials, named, traces_of, without_values

SENSIBLE_BLOCK = 256  # elements of one program; with fewer, the number of programs limits the speed
TOLERANCE = 1.05  # of the best configuration's time
# Entries of a configuration that are launch options, not arguments of the kernel.
OPTIONS = {"num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu", "matrix_instr_nonkdim", "kpack"}


def about_autotuning(trials: Trials) -> Finding | None:
    """Of a right answer to an exercise about autotuning: is the space sensible, and the choice in it?"""
    traces = [trace for i, trace in trials.traces.items() if trials.cases[i].expected.numel()]
    if found := about_the_space(traces):
        return found
    return _measured_choice(trials, traces) if trials.on_gpu else about_the_constants(trials)


def about_the_grid(trials: Trials, finding: Finding) -> Finding:
    """The finding about a wrong answer, explained by a grid that does not follow the configuration, if one does not."""
    if finding.slug not in (Slug.UNWRITTEN_OUTPUT, Slug.TAIL_WRONG):
        return finding
    short = [each for each in _grids(trials) if each[0] * each[1] < each[2]]
    if not short or all(programs == elements // block for programs, block, elements, _ in short):
        return finding  # the grid follows, and is rounded down: a difference says so
    programs, block, elements, name = short[0]
    means = (
        f"With BLOCK_SIZE = {block} the grid started {programs} program{'s' * (programs != 1)}: "
        f"{programs * block} of {elements} elements ({name})."
    )
    return replace(
        finding,
        means=f"{means} The judge tries several configurations of your space, as autotune does, and each has its own "
        "number of programs.",
        advice="the grid has to be a function that follows the block size: Triton calls it with a dictionary of the "
        'chosen values, and it returns the tuple: grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),).',
        repair="",
    )


def about_idle_programs(trials: Trials) -> str:
    """A remark about a right answer whose grid has programs without a block, in one of its configurations."""
    for programs, block, elements, name in _grids(trials):
        if elements and (programs - 1) * block >= elements:
            return (
                f"With BLOCK_SIZE = {block} the grid started {programs} programs, and {-(-elements // block)} would do "
                f"({name}): the others find no elements. A grid that is a function of meta follows the block size."
            )
    return ""


def _grids(trials: Trials) -> Iterator[tuple[int, int, int, str]]:
    """Of each autotuned launch: its programs, its BLOCK_SIZE, the elements of the result and the name of the case."""
    for i, trace in trials.traces.items():
        case = trials.cases[i]
        for launch in trace.tuned:
            if type(block := launch.args.get("BLOCK_SIZE")) is int:
                yield launch.programs, block, case.expected.numel(), case.case.name


def _measured_choice(trials: Trials, traces: list[Trace]) -> Finding | None:
    """Times every configuration at two sizes. What could not be measured costs nobody points."""
    count = max(len(launch.tuned.space) for trace in traces for launch in trace.tuned)
    if count > MAX_CONFIGURATIONS:
        return None
    small, large = trials.exercise.timing_cases
    # planning takes one configuration after the other, so each size is planned as often as there are
    cases = [Drawn(each, each.make(None), None, torch.float32) for each in (small, large) for _ in range(count)]
    found = list(traces_of(trials.plan([trials.source], cases)).values())
    if len(found) < len(cases):
        return None
    pairs = zip(cases, found, strict=True)
    tuned = tuple(TuneCase(trace, without_values(drawn.arguments)) for drawn, trace in pairs)
    reports = trials.run(ProgramRequest("tune", trials.source, tuned, named(trials.programs, found))).reports
    times = next((report.value for report in reports if report.has_value), None)
    if not isinstance(times, list) or len(times) != len(cases):
        return None
    if not all(type(t) is float and t > 0 for t in times):
        return None
    half = len(times) // 2
    same_key = key_of(found[0]) == key_of(found[half])
    return about_the_choice(same_key, small.name, large.name, times[:half], times[half:])


def about_the_space(traces: list[Trace]) -> Finding | None:
    """The finding about the space of configurations; None if it is sensible."""
    launches = [launch for trace in traces for launch in trace.tuned]
    if not launches:
        return Finding(
            "not-autotuned",
            "The kernel was not launched through @triton.autotune.",
            "The block size is fixed in the code, so it is the same for every GPU and every size.",
            "put @triton.autotune(configs=[…], key=[…]) above @triton.jit, and leave the block size out of the launch.",
        )
    spaces = [launch.tuned.space for launch in launches]
    if max(len({repr(sorted(c.items())) for c in space}) for space in spaces) < 2:
        return Finding(
            "not-autotuned",
            "The space has only one configuration, so there is nothing to choose.",
            advice="list several configurations, with different block sizes and numbers of warps.",
        )
    # the largest power of two that every launch passes, for all sizes of its tensors
    fixed = max((value for _, value in set.intersection(*map(_constants, launches))), default=1)
    sizes = ([v for k, v in c.items() if k not in OPTIONS and type(v) is int and v > 0] for s in spaces for c in s)
    largest = fixed * max(map(math.prod, sizes))
    if largest < SENSIBLE_BLOCK:
        return Finding(
            "poor-configurations",
            f"The largest block of the space has {largest} elements.",
            "Each program moves only a few bytes, so the GPU spends its time on starting programs. This is dozens of "
            "times slower.",
            "add blocks of 256 to 8192 elements, with 4 or 8 warps.",
        )
    return None


def _constants(launch: Launch) -> set[tuple[str, int]]:
    chosen = {name for configuration in launch.tuned.space for name in configuration}
    return {
        (name, value)
        for name, value in launch.args.items()
        if name not in chosen and type(value) is int and value > 0 and value & (value - 1) == 0
    }


def key_of(trace: Trace) -> list:
    """The values of the key, under which the autotuner stores a choice."""
    return [[launch.args.get(name) for name in launch.tuned.key] for launch in trace.tuned]


def about_the_choice(same_key: bool, size: str, larger: str, small: list[float], large: list[float]) -> Finding | None:
    """Checks the choice for the larger size. `small` and `large` are the times of the configurations, in ms."""
    chosen = small.index(min(small)) if same_key else large.index(min(large))
    slower = large[chosen] / min(large)
    if slower <= TOLERANCE:
        return None
    return Finding(
        "poor-configurations",
        f"At {larger} the configuration that was chosen takes {slower:.2f} times as long as the best of the space.",
        f"The key does not change with the size, so the choice for {size} is used for every size.",
        'put into the key everything that the best choice depends on, such as the size: key=["n_elements"].',
    )


def about_the_constants(trials: Trials) -> Finding | None:
    """Of a right answer: the finding about a constant that the space varies and that no kernel uses.

    Its program is the same for every value of the constant. A constant may also be the number of programs in the launch
    grid, for a kernel that is right with any number of them.
    """
    index = next((i for i in trials.traces if trials.cases[i].variants), None)
    if index is None:
        return None
    drawn, trace = trials.cases[index], trials.traces[index]
    tried = [(other, launch) for launch in trace.tuned for other in launch.tuned.others]
    used = {other.name for other, launch in tried if other.program != launch.program}
    unused = next((other.name for other, _ in tried if other.name not in used), None)
    if not unused or _is_number_of_programs(trials, drawn, trace):
        return None
    return Finding(
        "not-autotuned",
        f"The configurations differ in {unused}, but the kernel does the same for every value of {unused}.",
        "No kernel uses this constant, so the autotuner times the same kernel again and again.",
        f"use {unused} in the kernel: pid * {unused} + tl.arange(0, {unused}). Or remove it from the space.",
    )


def _is_number_of_programs(trials: Trials, drawn: Drawn, trace: Trace) -> bool:
    """Whether the configurations have different grids, and one program alone gives the right result too."""
    count = min(max(len(launch.tuned.space) for launch in trace.tuned), MAX_CONFIGURATIONS)
    plans = trials.plan([trials.source], [replace(drawn, configuration=number) for number in range(count)])
    if len({tuple(launch.grid for launch in each.tuned) for each in traces_of(plans).values()}) < 2:
        return False
    steps = (replace(s, grid=(1, 1, 1)) if isinstance(s, Launch) and s.tuned else s for s in trace.steps)
    seen = trials.replay({0: (drawn, replace(trace, steps=tuple(steps)))})
    return 0 in seen and bool(seen[0].comparison and seen[0].comparison.right)
