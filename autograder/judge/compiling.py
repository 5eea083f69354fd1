"""Compiles what a passing answer launched. Triton's front end has read it already; a compiler has more to say.

Programs are compiled in the box, for an NVIDIA and an AMD GPU that need not be here: of each kernel and its options,
the one with the largest constants, because it needs the most shared memory. A target that this machine cannot compile
for is left out.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading

from triton.backends import backends

from ..box import Outcome
from ..box.wire.answers import Launch, Report, Trace, Trouble
from ..box.wire.requests import CompileCase, CompileRequest
from ..diagnosis import refused, too_much_shared_memory
from ..verdict import Finding
from .trials import MAX_CONFIGURATIONS, Runs

TARGETS = [target for target, backend in (("cuda", "nvidia"), ("hip", "amd")) if backend in backends]
SHARED_MEMORY = 227 << 10  # bytes that a program may have on Hopper, the most of the course's cards
MAX_COMPILED = 6  # programs of an answer, and more if it has a space of configurations: all of them must compile
LARGE = 1 << 15  # product of constants: what is larger compiles for long
MAX_REMEMBERED = 1024
ATTEMPTS = 4  # jobs of an answer; a case that ends its process costs one

# Results by the digest of a case. A result follows from its key alone, whoever asked first.
_remembered: dict[str, Trouble | int | None] = {}
_remembering = threading.Lock()  # a pool has several judges


def refusal(runs: Runs, traces: list[Trace]) -> Finding | None:
    """Why a compiler does not accept the kernels that an answer launched; None if it does."""
    if not TARGETS or not runs.judge.compiles:
        return None
    asked = _Asked(runs)
    chosen = _chosen([launch for trace in traces for launch in trace.launches], runs.programs)
    groups = [[_case(launch, target) for target in TARGETS] for launch in chosen]
    asked.compile([group[0] for group in groups])
    # one compiler that accepts a program is enough
    asked.compile([case for group in groups if asked.refuses(group[0]) for case in group[1:]])
    return next(filter(None, map(asked.finding, groups)), None)


class _Asked:
    """What the compiler said of each case, by its key: a Trouble, bytes of shared memory, or None if it is not here."""

    def __init__(self, runs: Runs):
        self.runs = runs
        self.said: dict[str, Trouble | int | None] = {}

    def compile(self, cases: list[CompileCase]) -> None:
        """Asks the box for the cases that are not remembered. A case may stay without a result."""
        keys = {_key(case): case for case in cases}
        self.said |= {key: _remembered[key] for key in keys if key in _remembered}
        waiting = [key for key in keys if key not in self.said]
        for _ in range(ATTEMPTS):
            if not waiting:
                return
            cases = tuple(keys[key] for key in waiting)
            named = {case.program: self.runs.programs[case.program] for case in cases}
            outcome = self.runs.run(CompileRequest(self.runs.source, cases, named))
            reports = outcome.by_case(len(waiting))
            for position, report in reports.items():
                self._take(waiting[position], report)
            waiting = [key for position, key in enumerate(waiting) if position not in reports]
            if outcome.exceeded:
                return

    def _take(self, key: str, report: Report | Outcome) -> None:
        if isinstance(report, Outcome):  # not remembered: it may depend on the machine
            self.said[key] = Trouble("compile-time" if report.exceeded else "compile-crash")
            return
        if report.error and report.error.kind != "compile":
            raise RuntimeError(f"the compiler's job failed: {report.error.kind} {report.error.message[:200]}")
        with _remembering:
            self.said[key] = _remembered[key] = report.error or report.value
            while len(_remembered) > MAX_REMEMBERED:
                del _remembered[next(iter(_remembered))]

    def refuses(self, case: CompileCase) -> bool:
        """Whether there is no program for this target."""
        return type(self.said.get(_key(case))) is not int

    def finding(self, cases: list[CompileCase]) -> Finding | None:
        """About one program for each target. All must fail: one alone may be Triton's own fault.

        What took too long is not said to fail: large blocks take long, and are right.
        """
        said = [self.said.get(_key(case)) for case in cases]
        if all(isinstance(each, Trouble) and each.kind != "compile-time" for each in said):
            return refused(said[0])
        needed = said[0] if TARGETS[0] == "cuda" else None
        if type(needed) is int and needed > SHARED_MEMORY:
            return too_much_shared_memory(needed, SHARED_MEMORY)
        return None


def _key(case: CompileCase) -> str:
    return hashlib.sha256(json.dumps([case.program, case.options, case.target]).encode()).hexdigest()


def _case(launch: Launch, target: str) -> CompileCase:
    return CompileCase(launch.on(target), launch.options, target)


def _chosen(launches: list[Launch], programs: dict[str, str]) -> list[Launch]:
    """One launch of each kernel and its options: that with the largest blocks that still compile soon.

    Of an autotuned kernel, one launch of each configuration.
    """
    found: dict[str, Launch] = {}
    for launch in launches:
        if launch.digests <= programs.keys():
            own = launch.constants if launch.tuned else {}
            key = json.dumps([launch.kernel, sorted(launch.options.items()), own], sort_keys=True)
            found[key] = max(found.get(key, launch), launch, key=_rank)
    tuned = [launch for launch in found.values() if launch.tuned][:MAX_CONFIGURATIONS]
    return tuned + [launch for launch in found.values() if not launch.tuned][:MAX_COMPILED]


def _rank(launch: Launch) -> float:
    """The product of a launch's constants; where that is large, the smaller the better."""
    size = math.prod(value for value in launch.constants.values() if type(value) is int and value > 0)
    return size if size <= LARGE else 1 / size
