"""Compiles what a passing answer launched: the interpreter accepts much that a GPU's compiler refuses.

Every kernel is compiled in the box, for an NVIDIA and an AMD GPU that need not be here, with the types, constants and
options of its launches. Nearly every error shows in the first stage, so most specialisations go through that one
only; one of each kernel goes on to LLVM's representation. A target that this machine cannot compile for is left out.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from triton.backends import backends

from ..box import Outcome
from ..box.wire import Report, Specialisation, Trouble
from ..box.wire.codec import to_json
from ..box.wire.requests import CompileCase, CompileRequest, TemplateRequest
from ..diagnosis import refused
from ..exercises.spec import Blanks
from ..verdict import Finding
from .launched import OPTIONS, tuned_launches

TARGETS = [target for target, backend in (("cuda", "nvidia"), ("hip", "amd")) if backend in backends]
MAX_LAUNCHED = 8  # specialisations of an answer that are compiled, without those of autotuners
MAX_KERNELS = 32  # kernels of an answer that are compiled
MAX_TUNED = 32  # configurations of an answer's autotuners that are compiled
MAX_THOROUGH = 4  # specialisations that go through more than the first stage
MAX_REMEMBERED = 1024
ATTEMPTS = 4  # jobs of an answer; a case that ends its process costs one

# Results by the digest of a source and a case. A result follows from its key alone, whoever asked first.
_remembered: dict[str, Trouble | None] = {}
_remembering = threading.Lock()  # a pool has several judges


def refusal(judge, exercise, source: str, launched: Iterable[Specialisation], traces: Iterable[dict]) -> Finding | None:
    """Why a compiler does not accept the kernels of an answer; None if it does.

    launched: the specialisations that the interpreter ran. traces: those of the launches, for their autotuners.
    """
    if not TARGETS or not judge.compiles:
        return None
    return Results(judge, exercise, source).finding(_cases(list(launched), list(traces)))


def refused_blanks(
    judge, exercise, source: str, launched: Iterable[Specialisation], blanks: Blanks
) -> dict[str, Finding]:
    """The blanks that a compiler refuses, each tried alone in the template's kernel."""
    special = next((each for each in launched if each.kernel == blanks.kernel), None)
    if not TARGETS or not judge.compiles or special is None:
        return {}
    template = TemplateRequest(blanks.template, blanks.kernel, tuple(blanks.names))
    results = Results(judge, exercise, source, template)
    cases = {name: CompileCase(special, TARGETS[0], blank=name) for name in blanks.names}
    results.compile(list(cases.values()))
    return {name: finding for name, case in cases.items() if (finding := results.finding([case]))}


class Results:
    """What the compiler said about each case, by its key: a Trouble, or None if it did not refuse."""

    def __init__(self, judge, exercise, source: str, template: TemplateRequest | None = None):
        self.judge, self.exercise, self.source, self.template = judge, exercise, source, template
        self.said: dict[str, Trouble | None] = {}

    def compile(self, cases: list[CompileCase]) -> None:
        """Asks the box for the cases that are not remembered. A case may stay without a result."""
        keys = {self._key(case): case for case in cases}
        self.said |= {key: _remembered[key] for key in keys if key in _remembered}
        waiting = [key for key in keys if key not in self.said]
        for _ in range(ATTEMPTS):
            if not waiting:
                return
            request = CompileRequest(self.source, tuple(keys[key] for key in waiting), self.template)
            outcome = self.judge.run(self.exercise, request)
            reports = outcome.by_case(len(waiting))
            for position, report in reports.items():
                self._take(waiting[position], keys[waiting[position]], report)
            waiting = [key for position, key in enumerate(waiting) if position not in reports]
            if outcome.exceeded:
                return

    def _take(self, key: str, case: CompileCase, report: Report | Outcome) -> None:
        if isinstance(report, Outcome):  # not remembered: it may depend on the machine
            self.said[key] = Trouble("compile-time" if report.exceeded else "compile-crash", construct=case.target)
            return
        if report.error and report.error.kind != "compile":
            raise RuntimeError(f"the compiler's job failed: {report.error.kind} {report.error.message[:200]}")
        with _remembering:
            self.said[key] = _remembered[key] = report.error
            while len(_remembered) > MAX_REMEMBERED:
                del _remembered[next(iter(_remembered))]

    def _key(self, case: CompileCase) -> str:
        return hashlib.sha256(to_json([self.source, self.template, case]).encode()).hexdigest()

    def finding(self, cases: list[CompileCase]) -> Finding | None:
        """The first error. A later stage must fail for every target: one alone may be Triton's own fault."""
        self.compile(cases)
        for case in cases:
            trouble = self.said.get(self._key(case))
            if trouble and (not case.thorough or self._fails_everywhere(case)):
                parameters = case.specialisation.parameters
                return refused(trouble, {k: p["constant"] for k, p in parameters.items() if "constant" in p})
        return None

    def _fails_everywhere(self, case: CompileCase) -> bool:
        """False if one of the targets could not be tried, or took too long: large blocks take long, and are right."""
        alike = [replace(case, target=target) for target in TARGETS]
        self.compile(alike)
        troubles = [self.said.get(self._key(each)) for each in alike]
        return all(t and t.kind != "compile-time" for t in troubles)


# -- what to compile -------------------------------------------------------------------------------------


def _cases(launched: list[Specialisation], traces: list[dict]) -> list[CompileCase]:
    """The cases for an answer: for each kernel thorough ones, and the first stage of what differs from them."""
    chosen = _different(launched)
    thorough = list(_smallest(chosen))[:MAX_THOROUGH]
    others = [each for each in [*chosen, *_tuned(chosen, traces)] if each not in thorough]
    first = [CompileCase(each, TARGETS[0]) for each in others]
    first += [CompileCase(each, target) for each in thorough for target in TARGETS]
    return first + [CompileCase(each, TARGETS[0], thorough=True) for each in thorough]


def _different(launched: list[Specialisation]) -> list[Specialisation]:
    """One of each kernel, types and options, and the one with the largest blocks. Each kernel is among the first."""
    kinds: dict[str, tuple[int, Specialisation]] = {}
    seen: Counter[str] = Counter()
    for each in launched:
        key = to_json([each.kernel, _types(each), each.options])
        if key not in kinds:
            kinds[key] = seen[each.kernel], each
            seen[each.kernel] += 1
    in_turn = [each for _, each in sorted(kinds.values(), key=lambda pair: pair[0])]
    chosen = in_turn[: max(MAX_LAUNCHED, min(len(seen), MAX_KERNELS))]
    largest = max(launched, key=_size, default=None)
    return chosen if largest is None or largest in chosen else [*chosen, largest]


def _types(special: Specialisation) -> dict:
    return {name: parameter.get("type") for name, parameter in special.parameters.items()}


def _smallest(chosen: list[Specialisation]) -> Iterator[Specialisation]:
    """Of each kernel the one with the smallest blocks, which compiles fastest."""
    for kernel in dict.fromkeys(each.kernel for each in chosen):
        yield min((each for each in chosen if each.kernel == kernel), key=_size)


def _size(special: Specialisation) -> int:
    constants = (parameter.get("constant") for parameter in special.parameters.values())
    return math.prod(value for value in constants if type(value) is int and value > 0)


def _tuned(chosen: list[Specialisation], traces: list[dict]) -> list[Specialisation]:
    """Every configuration of the autotuners, at most MAX_TUNED, each with the types of one launch of its kernel."""
    found = {}
    for step in (step for trace in traces for step in tuned_launches(trace)):
        special = next((each for each in chosen if each.kernel == step.get("kernel")), None)
        for configuration in step["tuned"]["space"] if special else ():
            constants = {k: {"constant": v} for k, v in configuration.items() if k in special.parameters}
            options = {k: v for k, v in configuration.items() if k in OPTIONS - set(constants) and type(v) is int}
            each = Specialisation(special.kernel, special.parameters | constants, special.options | options)
            found.setdefault(to_json(each), each)
    return list(found.values())[:MAX_TUNED]
