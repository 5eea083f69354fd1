"""Checks that a space of configurations is sensible, and that the key leads to a good choice in it.

The first check reads the trace of the answer's launches, on any machine. The second one measures on a GPU: our own
process times every configuration at two sizes. If the key is the same for both sizes, the autotuner keeps the choice
that it made for the small size.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..box.wire import Report
from ..box.wire.requests import TuneCase, TuneRequest
from ..verdict import Finding, Slug
from .launched import MAX_CONFIGURATIONS, OPTIONS, tuned_launches
from .trials import Drawn, Trials

SENSIBLE_BLOCK = 256  # elements of one program; with fewer, the number of programs limits the speed
TOLERANCE = 1.05  # of the best configuration's time


def about_autotuning(trials: Trials) -> Finding | None:
    """Of a right answer to an exercise about autotuning: is the space sensible, and the choice in it?"""
    traces = [trace for i, trace in trials.traces.items() if trials.cases[i].expected.numel()]
    return about_the_space(traces) or (_measured_choice(trials, traces) if trials.on_gpu else None)


def about_the_grid(trials: Trials, finding: Finding) -> Finding:
    """The finding about a wrong answer, explained by a grid that does not follow the configuration, if one does not."""
    if finding.slug not in (Slug.UNWRITTEN_OUTPUT, Slug.TAIL_WRONG):
        return finding
    short = []
    for i, trace in trials.traces.items():
        for launch in tuned_launches(trace):
            programs, block = math.prod(launch.get("grid") or (0,)), launch["args"].get("BLOCK_SIZE")
            elements = trials.cases[i].expected.numel()
            if type(block) is int and programs * block < elements:
                short.append((programs, block, elements, trials.cases[i].case.name))
    if not short:
        return finding
    programs, block, elements, name = short[0]
    means = (
        f"With BLOCK_SIZE = {block} the grid started {programs} program{'s' * (programs != 1)}: "
        f"{programs * block} of {elements} elements ({name})."
    )
    if all(programs == elements // block for programs, block, elements, _ in short):
        return replace(
            finding,
            means=f"{means} That is elements / BLOCK_SIZE rounded down: the last block, which is not full, has no "
            "program.",
            advice="round up: triton.cdiv(n_elements, …) instead of n_elements // ….",
        )
    return replace(
        finding,
        means=f"{means} The judge tries several configurations of your space, as autotune does, and each has its own "
        "number of programs.",
        advice="the grid has to be a function that follows the block size: Triton calls it with a dictionary of the "
        'chosen values, such as meta["BLOCK_SIZE"], and it returns the tuple. Programs times block size must reach '
        "the number of elements.",
    )


def about_idle_programs(trials: Trials) -> str:
    """A remark about a right answer whose grid has programs without a block, in one of its configurations."""
    for i, trace in trials.traces.items():
        for launch in tuned_launches(trace):
            programs, block = math.prod(launch.get("grid") or (0,)), launch["args"].get("BLOCK_SIZE")
            elements = trials.cases[i].expected.numel()
            if type(block) is int and elements and (programs - 1) * block >= elements:
                enough = -(-elements // block)
                return (
                    f"With BLOCK_SIZE = {block} the grid started {programs} programs, and {enough} would do "
                    f"({trials.cases[i].case.name}): the others find no elements. A grid that is a function of meta "
                    "follows the block size."
                )
    return ""


def _measured_choice(trials: Trials, traces: list[dict]) -> Finding | None:
    """Times every configuration at two sizes. What could not be measured costs nobody points."""
    count = max(len(step["tuned"]["space"]) for trace in traces for step in tuned_launches(trace))
    if count > MAX_CONFIGURATIONS:
        return None
    small, large = trials.exercise.timing_cases
    # planning takes one configuration after the other, so each size is planned as often as there are
    cases = [Drawn(case, case.make(None), None) for case in (small, large) for _ in range(count)]
    plans = trials.plan([trials.source], cases)
    found = [plan.trace for plan in plans.values() if isinstance(plan, Report) and "steps" in (plan.trace or {})]
    if len(found) < len(cases):
        return None
    described = tuple(TuneCase(trace, drawn.described()) for drawn, trace in zip(cases, found, strict=True))
    reports = trials.judge.run(trials.exercise, TuneRequest(described, trials.named(found))).reports
    times = next((report.value for report in reports if report.has_value), None)
    if not isinstance(times, list) or len(times) != len(cases):
        return None
    if not all(type(t) is float and t > 0 for t in times):
        return None
    half = len(times) // 2
    same_key = key_of(found[0]) == key_of(found[half])
    return about_the_choice(same_key, small.name, large.name, times[:half], times[half:])


def about_the_space(traces: list[dict]) -> Finding | None:
    """The finding about the space of configurations; None if it is sensible."""
    launches = [launch for trace in traces for launch in tuned_launches(trace)]
    if not launches:
        return Finding(
            "not-autotuned",
            "The kernel was not launched through @triton.autotune.",
            "The block size is fixed in the code, so it is the same for every GPU and every size.",
            "put @triton.autotune(configs=[…], key=[…]) above @triton.jit, and leave the block size out of the launch.",
        )
    spaces = [launch["tuned"]["space"] for launch in launches]
    if max(len({repr(sorted(c.items())) for c in space}) for space in spaces) < 2:
        return Finding(
            "not-autotuned",
            "The space has only one configuration, so there is nothing to choose.",
            advice="list several configurations, with different block sizes and numbers of warps.",
        )
    fixed = _fixed_constants(launches)
    largest = max(block_of(c, fixed) for space in spaces for c in space)
    if largest < SENSIBLE_BLOCK:
        return Finding(
            "poor-configurations",
            f"The largest block of the space has {largest} elements.",
            "Each program moves only a few bytes, so the GPU spends its time on starting programs. This is dozens of "
            "times "
            "slower.",
            "add blocks of 256 to 8192 elements, with 4 or 8 warps.",
        )
    return None


def block_of(configuration: dict, fixed: int) -> int:
    """Elements per program: the product of the configuration's sizes and of the constants fixed in the code."""
    sizes = [v for k, v in configuration.items() if k not in OPTIONS and type(v) is int and v > 0]
    return math.prod(sizes) * fixed


def _fixed_constants(launches: list[dict]) -> int:
    """The largest power of two that every launch passes, for all sizes of its tensors."""
    alike = set.intersection(*(_constants(launch) for launch in launches))
    return max((value for _, value in alike), default=1)


def _constants(launch: dict) -> set[tuple[str, int]]:
    chosen = {name for configuration in launch["tuned"]["space"] for name in configuration}
    return {
        (name, value)
        for name, value in launch["args"].items()
        if name not in chosen and type(value) is int and value > 0 and value & (value - 1) == 0
    }


def key_of(trace: dict) -> list:
    """The values of the key, under which the autotuner stores a choice."""
    return [
        [launch["args"].get(name) for name in launch["tuned"]["key"] if isinstance(name, str)]
        for launch in tuned_launches(trace)
    ]


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
