"""Judges exercises whose function takes and returns JAX arrays.

The box traces the function on arrays without values, and records what it does as it records a host function
(box/inside/jax_plan.py). The replay, the rules and the large sizes are those of kernels. What differs is here: a case
is several calls (plain, under jit, with other seeds, with gradients), and advice speaks of JAX.

`Exercise.calls` lists the calls of each case. `Exercise.judge_calls` looks at their outputs together.
"""

from __future__ import annotations

import importlib.util
import math
import re
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import torch

from ..answer import is_starter
from ..box import Outcome
from ..box.wire.answers import Report, Trace, Trouble
from ..box.wire.requests import TRACED, Decoy, JaxCase, JaxPlanRequest, Slot, read_result
from ..diagnosis import Observation, diagnose, error_map, overall
from ..diagnosis.observation import Comparison
from ..exercises import find
from ..exercises.cases import Case, Cotangent, Strided, Tag, Varying
from ..exercises.spec import Call, Exercise
from ..tensors import dtype_name
from ..verdict import CaseResult, Finding, Slug, Verdict, quoted
from . import compiling, large
from .differences import blames_a_difference
from .trials import Runs, ended, facts, trace_of, types, verdict_of, without_values

MOST_REPAIRED = 8  # repaired sources that are judged
MAX_COMPUTED = 64  # elements of an array that JAX may compute with outside of a kernel: a seed, 1 / (1 - p)


class JaxMissing(RuntimeError):
    """JAX is missing where answers are judged. The message says what to install."""


def require_jax() -> None:
    """jax-triton is not needed: the box traces its calls, and launches the kernels itself."""
    if importlib.util.find_spec("jax") is None:
        raise JaxMissing("this exercise needs jax: pip install jax")


@dataclass(eq=False)
class JaxCall:
    """One call of a case. part: see box.wire.requests.JaxCase. arguments: tensors and numbers.

    got: the output, in the shape that it should have; None if there is none. forward: for a gradient, the call whose
    value is beside it. about: the exercise whose mistakes explain this call.
    """

    case: Case
    call: Call
    part: str
    arguments: tuple
    cotangent: torch.Tensor | None
    about: Exercise
    shape: tuple[int, ...]
    dtype: torch.dtype
    configuration: int
    forward: JaxCall | None = None
    got: torch.Tensor | None = None
    seen: dict | None = None  # the fields of an Observation; None if the box did not reach the call
    poison = "nan"  # of the replay, see trials.Drawn
    computes = MAX_COMPUTED

    def planned(self) -> JaxCase:
        """What the learner's Python gets. Under jit integers are traced, such as seeds. Other numbers are told."""
        given = tuple(
            decoy(a) if isinstance(a, torch.Tensor) else TRACED if self.traces(a) else a
            for a in self.arguments
        )
        cotangent = decoy(self.cotangent) if self.part == "gradient" else None
        return JaxCase(given, cotangent, self.part, self.configuration)

    def traces(self, argument) -> bool:
        return self.call.jit and type(argument) is int

    @property
    def tensors(self) -> list[Strided]:
        """The inputs of the trace."""
        given = [torch.tensor(a, dtype=torch.int32) if self.traces(a) else a for a in self.arguments]
        given += [self.cotangent] if self.part == "gradient" else []
        return [Strided(each) for each in given if isinstance(each, torch.Tensor)]

    def observation(self, backend: str, flat: bool = True) -> Observation:
        """What was seen. flat: arrays as rows of elements, because a kernel sees them so."""
        if self.got is None:
            return Observation(self.about, self.case, (), backend, **self.seen)
        result, arguments, got = self.seen["result"], self.arguments, self.got
        if self.about.random:
            arguments = *arguments, self.got if self.forward is None else self.forward.got
        tensors = [*arguments, *([self.cotangent, self.got] if self.about.random and self.forward else [])]
        expected = self._expected(arguments)
        if flat and result.shape == self.shape:
            tensors = [t.reshape(-1) if isinstance(t, torch.Tensor) else t for t in tensors]
            result = replace(result, shape=(self.got.numel(),))
            got, expected = got.reshape(-1), expected.reshape(-1)
        given = tuple(Strided(t) if isinstance(t, torch.Tensor) else t for t in tensors)
        seen = self.seen | {"result": result}
        bound = self.about.bounds[self.dtype]
        bound = replace(bound, relative=2 * bound.relative) if self.part == "gradient" else bound
        return Observation(self.about, self.case, given, backend, **seen, comparison=Comparison(got, expected, bound))

    def _expected(self, arguments: tuple) -> torch.Tensor:
        if self.part != "gradient":
            return self.about.reference(*arguments).double()
        first, *rest = arguments
        first = first.double().requires_grad_()
        (self.about.reference(first, *rest).double() * self.cotangent.double()).sum().backward()
        return first.grad


def decoy(tensor: torch.Tensor) -> Decoy:
    return Decoy(tuple(tensor.shape), tuple(tensor.stride()), dtype_name(tensor.dtype))


class JaxJudgement(Runs):
    """One answer to an exercise of kind "jax". `traces` are by call."""

    def __init__(self, judge, exercise: Exercise, source: str, seed: int, only: Case | None = None):
        """only: the case that is judged; None stands for all."""
        require_jax()
        super().__init__(judge, exercise, source, seed)
        generator = torch.Generator().manual_seed(seed)
        self.calls: list[JaxCall] = []
        self.repaired = 0  # sources that were judged in the place of this one
        for number, case in enumerate(exercise.cases):
            drawn = case.make(generator)
            for call in exercise.calls(case) if only in (None, case) else ():
                self._add(case, call, drawn, number)

    def _add(self, case: Case, call: Call, drawn: tuple, configuration: int) -> None:
        """Adds a call. A gradient is two: its value comes from the forward rule, and is judged, too."""
        cotangent = next((a.values for a in drawn if isinstance(a, Cotangent)), None)
        given = (a.values[call.variant] if isinstance(a, Varying) else a for a in drawn if not isinstance(a, Cotangent))
        arguments = tuple(a.values if isinstance(a, Strided) else a for a in given)
        first = next(a for a in arguments if isinstance(a, torch.Tensor))
        dtype, forward = self.exercise.output_dtype or first.dtype, None
        for part in ("value", "gradient") if call.grad else ("result",):
            gradient = part == "gradient"
            about = find(self.exercise.rests_on) if self.exercise.rests_on and not gradient else self.exercise
            of_input = gradient or about.random  # the reference of a random one takes the output
            shape = first.shape if of_input else about.reference(*arguments).shape
            forward = JaxCall(
                case, call, part, arguments, cotangent, about, tuple(shape), first.dtype if gradient else dtype,
                configuration, forward,
            )  # fmt: skip
            self.calls.append(forward)

    def verdict(self) -> Verdict:
        exercise, (finding, seen) = self.exercise, self._judged()
        failing = (call for call, found in sorted(seen, key=lambda each: math.prod(each[0].shape)) if found)
        self.failing = next((call.case for call in failing), None)
        if finding and self.judge.explains and not is_starter(self.source, exercise.starter, exercise.entry):
            finding = blames_a_difference(exercise.name, self.source, finding, self._first, bool)
        maps = [error_map(call.observation(self.judge.backend, flat=False)) if found else None for call, found in seen]
        cases = zip(seen, maps)
        results = (CaseResult(c.case.name, quoted(f, self.source), m) for (c, f), m in cases)
        return verdict_of(self, finding, results, note="" if finding else self.doubt)

    def _judged(self) -> tuple[Finding | None, list[tuple[JaxCall, Finding | None]]]:
        """What is wrong, and of each case the call that says most."""
        seen = self._in_the_cases()
        observations, findings = [call.observation(self.judge.backend) for call, _ in seen], [f for _, f in seen]
        traces = list(self.traces.values())
        self.judge.launchers = types(traces)
        found = overall(observations, findings) or compiling.refusal(self, traces) or self._at_large_sizes()
        return found, seen

    def _in_the_cases(self) -> list[tuple[JaxCall, Finding | None]]:
        """Of each case the call that says most."""
        self._plan()
        if self.traces:
            self.replay_once({call: (call, trace) for call, trace in self.traces.items()})
        return [found for case in self.exercise.cases if (found := self._of_case(case))]

    def _first(self, sources: list[str]) -> list[str]:
        """The first that is right, of the few that there is time for."""
        few = sources[: max(MOST_REPAIRED - self.repaired, 0)]
        self.repaired += len(few)
        return [*islice((source for source in few if self.judge.seconds_left and self._is_right(source)), 1)]

    def _is_right(self, source: str) -> bool:
        """Most are wrong: this is asked first where this answer fails."""
        other = partial(JaxJudgement, self.judge, self.exercise, source, self.seed)
        if self.failing:
            wrong = any(finding for _, finding in other(self.failing)._in_the_cases())
        else:
            wrong = other()._at_large_sizes()
        return not wrong and other()._judged()[0] is None

    def _at_large_sizes(self) -> Finding | None:
        if not (cases := large.drawn(self.exercise, self.seed)):
            return None
        asked = tuple(JaxCase(without_values(each.arguments)) for each in cases)
        request = JaxPlanRequest(self.source, self.exercise.entry, asked)
        return large.finding(self, cases, self.ask(request))

    def _of_case(self, case: Case) -> tuple[JaxCall, Finding | None] | None:
        """The call of a case that says most, and its finding. Gradients are judged if the forward pass is right."""
        calls = [call for call in self.calls if call.case is case and call.seen]
        if not calls:
            return None
        gradients = [call for call in calls if call.part == "gradient"]
        forward = [call for call in calls if call.part != "gradient"]
        call, finding = self._worst(forward)
        if not finding and self.exercise.judge_calls and forward:
            call, finding = forward[0], self.exercise.judge_calls(forward)
        if finding and self.exercise.rests_on:
            happened = f"The forward pass is not right yet. {finding.happened}"
            first = f"make {self.exercise.rests_on} right first: {finding.advice}"
            finding = replace(finding, happened=happened, advice=first)
        if not finding and gradients:
            call, finding = self._worst(gradients)
        if not finding or Tag.OPTIONAL in case.about and finding.slug == Slug.RUNTIME_ERROR:
            return call or calls[0], None
        return call, replace(finding, case=case.name)

    def _worst(self, calls: list[JaxCall]) -> tuple[JaxCall | None, Finding | None]:
        found = []
        for call in calls:
            o = call.observation(self.judge.backend)
            if finding := _of_jax(o) or _no_kernel(o, call.part) or _explained(diagnose(o), o.trouble):
                found.append((call, finding))
        return min(found, key=lambda each: each[1].slug.rank, default=(calls[0] if calls else None, None))

    def _plan(self) -> None:
        """Traces the calls. Those under jit share a trace if nothing that JAX sees differs. Plain calls do not."""
        shared: dict[tuple, list[JaxCall]] = {}
        for call in self.calls:
            shared.setdefault((call.planned(), None if call.call.jit else id(call)), []).append(call)
        request = JaxPlanRequest(self.source, self.exercise.entry, tuple(case for case, _ in shared))
        reports = self.ask(request)
        for number, calls in enumerate(shared.values()):
            report = reports.get(number)
            if trace := trace_of(report):
                self.traces |= dict.fromkeys(calls, trace)
            elif report is not None:
                calls[0].seen = ended(report, "plan")

    def seen(self, drawn: JaxCall, trace: Trace, report: Report | Outcome, output: bytes, slot: Slot) -> None:
        """Notes in a call what was seen."""
        if isinstance(report, Outcome) or report.error or report.result is None:
            drawn.seen = ended(report) | facts(trace)
            return
        evidence = report.evidence if drawn.call.needs_kernel else replace(report.evidence, launched=("any",))
        drawn.seen = {"result": report.result, "evidence": evidence, **facts(trace)}
        drawn.got = read_result(slot, output, drawn.dtype, drawn.shape)


def _of_jax(o: Observation) -> Finding | None:
    """What the function did with JAX beside its launches."""
    t = o.trouble
    if t is None:
        return None
    if t.kind in ("host-arithmetic", "not-replayable"):
        return Finding(
            "no-triton-kernel",
            f"JAX computes part of the result outside of the kernel: {t.message}.",
            "The kernel must do all the arithmetic: each operation outside of it can cost one more pass over memory.",
            "keep reshapes, casts and the call, and move the arithmetic into the kernel.",
        )
    if t.kind == "not-allowed" and t.construct.startswith("jax."):
        return Finding(
            "not-allowed",
            f"The function uses {t.construct}, which cannot be judged here.",
            "That is a limit of the judge. Between launches it knows moves and casts of arrays, and arithmetic on a "
            "few numbers.",
            "call jt.triton_call directly, and compute in the kernel.",
        )
    return None


def _no_kernel(o: Observation, part: str) -> Finding | None:
    if o.result is None or o.evidence.launched or not math.prod(o.result.shape):
        return None
    what, where = ("gradient", "the backward function") if part == "gradient" else ("output", o.exercise.entry)
    advice = "return its result first: dx, None, None." if part == "gradient" else "return its result."
    advice = f"write the kernel, call it with jt.triton_call(…) in {where}, and {advice}"
    if o.comparison and not o.comparison.value.any():
        return Finding("not-attempted", f"The {what} is zero everywhere, and no Triton kernel wrote it.", "", advice)
    means = "A Triton kernel must compute the result."
    return Finding("no-triton-kernel", f"No Triton kernel contributed to the {what}.", means, advice)


# What JAX says, and what it means here.
_OF_JAX = (
    (r"bwd rule",
     "The backward function must return one gradient for each argument, with the shape of that argument.",
     "return dx, None, None: the gradient of x, and None for p and for the seed."),
    (r"JVP|ifferentiation",
     "JAX cannot see inside a Triton kernel, so it cannot differentiate it.",
     "define the gradient with jax.custom_vjp: a forward and a backward function."),
    (r"Tracer|traced|hashable|nondiff_argnums",
     "Under jax.jit the seed is a traced array, not a number: its value is known only at run time.",
     "pass jnp.asarray(seed, jnp.int32) to jt.triton_call after x, and tl.load it in the kernel."),
)  # fmt: skip


def _explained(finding: Finding | None, trouble: Trouble | None) -> Finding | None:
    """Adds the usual reason to an error of JAX: its message only says what happened inside JAX."""
    if finding is None or trouble is None or finding.slug != Slug.RUNTIME_ERROR:
        return finding
    for pattern, means, advice in _OF_JAX:
        if re.search(pattern, f"{trouble.type}: {trouble.message}"):
            return replace(finding, means=means, advice=advice)
    return finding
