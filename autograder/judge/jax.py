"""Judges exercises whose function takes and returns JAX arrays.

The box traces the function on arrays without values, and records what it does as it records a host function
(box/inside/jax_plan.py). The rest is the judgement of kernels. What differs is here: a case is several calls (plain,
under jit, with other seeds, with gradients), of which one speaks for the case, and advice speaks of JAX.

`Exercise.calls` lists the calls of each case. `Exercise.judge_calls` looks at their outputs together.
"""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from ..answer import is_starter
from ..box.wire import JaxPlanRequest, PlanCase, Slot, Trouble, read_result
from ..diagnosis import Observation, diagnose, overall
from ..diagnosis.observation import Comparison
from ..exercises import EXERCISES
from ..exercises.spec import Argument, Call, Case, Cotangent, Exercise, Strided, Tag, Varying
from ..verdict import Finding, Slug
from .differences import blames_a_difference
from .kernels import KernelJudgement
from .trials import Drawn, Reports, Trials, trace_of, traces_of, types, values_of

MOST_REPAIRED = 8  # repaired sources that are judged
MAX_COMPUTED = 64  # elements of an array that JAX may compute with outside of a kernel: a seed, 1 / (1 - p)


class JaxMissing(RuntimeError):
    """JAX is missing where answers are judged. The message says what to install."""


def require_jax() -> None:
    """jax-triton is not needed: the box traces its calls, and launches the kernels itself."""
    if importlib.util.find_spec("jax") is None:
        raise JaxMissing("this exercise needs jax: pip install jax")


@dataclass(eq=False, kw_only=True)
class JaxCall(Drawn):
    """One call of a case. Of a number that is traced, `arguments` has a tensor of int32, as JAX does.

    part: see box.wire.JaxPlanRequest. about: the exercise whose mistakes explain this call. forward: for a
    gradient, the call whose value is beside it. given: what mistakes take, see Exercise. seen: what was observed, with
    these arguments; None if the box did not reach the call.
    """

    call: Call
    part: str
    about: Exercise
    forward: JaxCall | None = None
    given: tuple = ()
    seen: Observation | None = None

    def planned(self, source: int = 0, **where) -> PlanCase:
        return super().planned(source, part=self.part, **where)


class JaxTrials(Trials):
    """What an answer does in the calls of all cases."""

    planner = JaxPlanRequest

    def draw(self) -> list[JaxCall]:
        require_jax()
        generator, made = torch.Generator().manual_seed(self.seed), []
        for number, case in enumerate(self.exercise.cases):
            drawn = case.make(generator)
            made += [each for call in self.exercise.calls(case) for each in self._parts(case, call, drawn, number)]
        return made

    def _parts(self, case: Case, call: Call, drawn: tuple[Argument, ...], number: int) -> list[JaxCall]:
        """One call. A gradient is two: its value comes from the forward rule, and is judged, too.

        Under jit integers are traced, such as seeds. Other numbers are told to the learner's Python.
        """
        given = [a.values[call.variant] if isinstance(a, Varying) else a for a in drawn if not isinstance(a, Cotangent)]
        given = [Strided(torch.tensor(a, dtype=torch.int32)) if call.jit and type(a) is int else a for a in given]
        weights = [Strided(a.values) for a in drawn if isinstance(a, Cotangent)]
        values = _numbers(given)
        first = next(value for value in values if isinstance(value, torch.Tensor))
        about = EXERCISES[self.exercise.rests_on] if self.exercise.rests_on else self.exercise
        shape = first.shape if about.random else about.reference(*values).shape  # a random one takes the output
        more = {"configuration": number, "computes": MAX_COMPUTED, "call": call}
        dtype, part = self.exercise.output_dtype or first.dtype, "value" if call.grad else "result"
        forward = JaxCall(case, tuple(given), tuple(shape), dtype, part=part, about=about, **more)
        if not call.grad:
            return [forward]
        more |= {"part": "gradient", "about": self.exercise, "forward": forward}
        return [forward, JaxCall(case, (*given, *weights), tuple(first.shape), first.dtype, **more)]

    def observe(self) -> list[Observation]:
        plans = self.plan([self.source], self.cases)
        self.traces = traces_of(plans)
        self.replay({i: (self.cases[i], trace) for i, trace in self.traces.items()})
        for i in plans.keys() - self.traces.keys():
            self.unplanned(self.cases[i], plans[i], True)
        return [call.seen for call in self.cases if call.seen]

    def plan(self, sources: list[str], cases: list[Drawn], of: None = None) -> Reports:
        """Traces the calls. Those under jit share a trace if nothing that JAX sees differs. Plain calls do not.

        Of those that share a plan without a trace, the first has it.
        """
        shared: dict[tuple, list[int]] = {}
        for number, each in enumerate(cases):
            jit = isinstance(each, JaxCall) and each.call.jit
            shared.setdefault((each.planned(), None if jit else number), []).append(number)
        numbers = [*shared.values()]
        plans = super().plan(sources, [cases[first] for first, *_ in numbers])
        return {n: plan for i, plan in plans.items() for n in numbers[i][: None if trace_of(plan) else 1]}

    def _compare(self, call: JaxCall, output: bytes, slot: Slot) -> Comparison:
        got, about = read_result(slot, output, call.dtype, call.shape), call.about
        values, incoming, bound, case, before = _numbers(call.arguments), [], about.bounds[call.dtype], call.case, None
        if call.forward:
            values, incoming, before = values[:-1], values[-1:], call.forward.seen
            bound, case = replace(bound, relative=2 * bound.relative), replace(case, gradient=0)
        if about.random:
            values = [*values, before.comparison.got if before and before.comparison else got]
        expected = about.expected(case, [*values, *incoming]).double()
        given = [*values, *incoming, got] if incoming and about.random else values
        call.given = tuple(Strided(a) if isinstance(a, torch.Tensor) else a for a in given)
        return Comparison(got, expected, bound)

    def _observation(self, call: JaxCall, **seen) -> Observation:
        if "evidence" in seen and not call.call.needs_kernel:
            seen["evidence"] = replace(seen["evidence"], launched=("any",))
        call.seen = Observation(call.about, call.case, call.given, self.judge.backend, **seen)
        return call.seen


def _numbers(arguments: Sequence) -> list:
    """The values. A number is Python's, also where it is traced."""
    return [v.item() if isinstance(v, torch.Tensor) and not v.ndim else v for v in values_of(arguments)]


class JaxJudgement(KernelJudgement):
    """One answer to an exercise of kind "jax"."""

    runs = JaxTrials

    def in_the_cases(self) -> Finding | None:
        """Of each case the call that says most speaks."""
        self.trials.observe()
        judged = [found for case in self.exercise.cases if (found := self._of_case(case))]
        self.observations, self.findings = [call.seen for call, _ in judged], [finding for _, finding in judged]
        self.judge.launchers = types(self.trials.traces.values())
        return overall([_as_rows(o) for o in self.observations], self.findings)

    STEPS = (in_the_cases, *KernelJudgement.STEPS[1:])

    def _of_case(self, case: Case) -> tuple[JaxCall, Finding | None] | None:
        """The call of a case that says most, and its finding. Gradients are judged if the forward pass is right."""
        calls = [call for call in self.trials.cases if call.case is case and call.seen]
        if not calls:
            return None
        gradients = [call for call in calls if call.part == "gradient"]
        forward = [call for call in calls if call.part != "gradient"]
        call, finding = _worst(forward)
        if not finding and self.exercise.judge_calls and forward:
            call, finding = forward[0], self.exercise.judge_calls(forward)
        if finding and self.exercise.rests_on:
            happened = f"The forward pass is not right yet. {finding.happened}"
            first = f"make {self.exercise.rests_on} right first: {finding.advice}"
            finding = replace(finding, happened=happened, advice=first)
        if not finding and gradients:
            call, finding = _worst(gradients)
        if not finding or Tag.OPTIONAL in case.about and finding.slug == Slug.RUNTIME_ERROR:
            return call or calls[0], None
        return call, replace(finding, case=case.name)

    def _explained(self, finding: Finding, wrong_blanks: None) -> Finding:
        """The finding, explained by a difference from a right answer."""
        if not self.judge.explains or is_starter(self.source, self.exercise.starter, self.exercise.entry):
            return finding
        attempts = iter(range(MOST_REPAIRED))

        def first(sources: list[str]) -> list[str]:
            """The first that is right, of the few that there is time for."""
            for source, _ in zip(sources, attempts):
                if self.judge.seconds_left and self._is_right(source):
                    return [source]
            return []

        return blames_a_difference(self.exercise.name, self.source, finding, first, bool)

    def _is_right(self, source: str) -> bool:
        """Most are wrong: one case in which this answer fails is asked first."""
        again = partial(JaxJudgement, self.judge, self.exercise, source, self.trials.seed)
        if any(self.findings):
            first, case = again(), self._soon_known().case
            first.trials.cases = [call for call in first.trials.cases if call.case is case]
            first.in_the_cases()
            if any(first.findings):
                return False
        return again().finding()[0] is None


def _worst(calls: list[JaxCall]) -> tuple[JaxCall | None, Finding | None]:
    found = []
    for call in calls:
        o = _as_rows(call.seen)
        if finding := _of_jax(o) or _no_kernel(o, call.part) or _with_a_reason(diagnose(o), o.trouble):
            found.append((call, finding))
    return min(found, key=lambda each: each[1].slug.rank, default=(calls[0] if calls else None, None))


def _as_rows(o: Observation) -> Observation:
    """The observation with arrays as rows of elements, because a kernel sees them so."""
    c = o.comparison
    if c is None or o.result.shape != tuple(c.got.shape):
        return o
    arguments = tuple(Strided(a.values.reshape(-1)) if isinstance(a, Strided) else a for a in o.arguments)
    flat = replace(c, got=c.got.reshape(-1), expected=c.expected.reshape(-1))
    return replace(o, arguments=arguments, result=replace(o.result, shape=(c.got.numel(),)), comparison=flat)


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


def _with_a_reason(finding: Finding | None, trouble: Trouble | None) -> Finding | None:
    """Adds the usual reason to an error of JAX: its message only says what happened inside JAX."""
    if finding is None or trouble is None or finding.slug != Slug.RUNTIME_ERROR:
        return finding
    for pattern, means, advice in _OF_JAX:
        if re.search(pattern, f"{trouble.type}: {trouble.message}"):
            return replace(finding, means=means, advice=advice)
    return finding
