"""Checks that the constants of a space of configurations matter: with another value, the kernel does something else."""

from __future__ import annotations

import copy
from dataclasses import replace

from ..box.wire import Report
from ..verdict import Finding
from .launched import MAX_CONFIGURATIONS, tuned_launches
from .trials import Drawn, Trials

MAX_OTHERS = 32  # programs of one launch


def about_the_constants(trials: Trials) -> Finding | None:
    """Of a right answer: the finding about a constant that the space varies and that no kernel uses.

    One case is replayed again with the programs for other values of each constant. If a kernel uses the constant, other
    programs read and write, or other places, or the replay fails. A constant may also be the number of programs in the
    launch grid, for a kernel that is right with any number of them.
    """
    index = next((i for i in trials.traces if trials.cases[i].variants), None)
    if index is None or trials.on_gpu:
        return None
    drawn, trace = trials.cases[index], trials.traces[index]
    others = _others(trace)
    changed = {(name, i): _with(trace, *each) for name, given in others.items() for i, each in enumerate(given)}
    if not changed:
        return None
    new = {key: each for key, each in changed.items() if each != trace}
    seen = trials.replay({key: (drawn, each) for key, each in ({None: trace} | new).items()})
    usual = seen[None].evidence.accesses if None in seen else 0
    used = {key[0] for key in new if not _same(seen.get(key), usual)}
    unused = next((name for name in others if name not in used), None)
    if not usual or not unused or _is_number_of_programs(trials, drawn, trace):
        return None
    return Finding(
        "not-autotuned",
        f"The configurations differ in {unused}, but the kernel does the same for every value of {unused}.",
        "No kernel uses this constant, so the autotuner times the same kernel again and again.",
        f"use {unused} in the kernel: pid * {unused} + tl.arange(0, {unused}). Or remove it from the space.",
    )


def _same(observation, accesses: int) -> bool:
    return bool(observation and observation.result and observation.evidence.accesses == accesses)


def _others(trace: dict) -> dict[str, list]:
    """For each constant that has several values in the space of a launch: the launch, and a program with another value.

    The program is None where the kernel could not be read with that value.
    """
    found: dict[str, list] = {}
    for number, launch in enumerate(tuned_launches(trace)):
        others = launch["tuned"].get("others")
        for other in others[:MAX_OTHERS] if isinstance(others, list) else ():
            name, program = other
            found.setdefault(str(name), []).append((number, program))
    return found


def _with(trace: dict, number: int, program: str | None) -> dict:
    changed = copy.deepcopy(trace)
    launch = list(tuned_launches(changed))[number]
    launch["program"] = program
    return changed


def _is_number_of_programs(trials: Trials, drawn: Drawn, trace: dict) -> bool:
    """Whether the configurations have different grids, and one program alone gives the right result too."""
    count = min(max(len(launch["tuned"]["space"]) for launch in tuned_launches(trace)), MAX_CONFIGURATIONS)
    plans = trials.plan([trials.source], [replace(drawn, configuration=number) for number in range(count)])
    traces = [plan.trace for plan in plans.values() if isinstance(plan, Report) and "steps" in (plan.trace or {})]
    if len({repr([launch["grid"] for launch in tuned_launches(each)]) for each in traces}) < 2:
        return False
    alone = copy.deepcopy(trace)
    for launch in tuned_launches(alone):
        launch["grid"] = [1, 1, 1]
    seen = trials.replay({0: (drawn, alone)})
    return 0 in seen and bool(seen[0].comparison and seen[0].comparison.right)
