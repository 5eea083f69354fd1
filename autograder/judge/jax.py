"""Judges exercises whose function takes and returns JAX arrays.

As with torch there are two jobs. The first runs the learner's Python: it traces the function on arrays without values,
and sends what it traced as a program (box/wire/programs.py). `jax_programs` looks at the program. The second job never
runs the learner's Python: it evaluates the programs on the real inputs, with the programs of the kernels.

`Exercise.calls` lists the calls of each case. `Exercise.judge_calls` finds what is wrong with the outputs; without it,
the comparison and the rules for tensors do.
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace

import torch

from ..box.wire import ProtocolError, Report, Trouble
from ..box.wire.layout import Packer, read_result
from ..box.wire.programs import read
from ..box.wire.requests import Decoy, JaxPlanRequest, JaxProgram, JaxReplayRequest
from ..diagnosis import Observation, diagnose, error_map, overall, wrong_program
from ..diagnosis.comparison import Comparison
from ..exercises.spec import UNUSUAL, Bound, Call, Case, Cotangent, Exercise, Strided, Tag
from ..tensors import dtype_name, is_poison
from ..verdict import CaseResult, ErrorMap, Finding, Slug, Verdict, quoted
from . import compiling
from .jax_calls import Asked, Made, described, requested, value_of
from .jax_programs import Seen, look


class JaxMissing(RuntimeError):
    """JAX is missing where answers are judged. The message says what to install."""


def require_jax() -> None:
    """jax-triton is not needed: the box traces its calls, and launches the kernels itself."""
    if importlib.util.find_spec("jax") is None:
        raise JaxMissing("this exercise needs jax: pip install jax")


class JaxJudgement:
    """One answer to an exercise of kind "jax"."""

    def __init__(self, judge, exercise: Exercise, source: str, seed: int):
        require_jax()
        self.judge, self.exercise, self.source = judge, exercise, source
        generator = torch.Generator().manual_seed(seed)
        self.made = [
            self._call(case, call, drawn)
            for case in exercise.cases
            for drawn in [case.make(generator)]
            for call in exercise.calls(case)
        ]

    def _call(self, case: Case, call: Call, drawn: tuple) -> Made:
        cotangent = next((a.values for a in drawn if isinstance(a, Cotangent)), None)
        arguments = tuple(value_of(a, call.variant) for a in drawn if not isinstance(a, Cotangent))
        first = next(a for a in arguments if isinstance(a, torch.Tensor))
        exercise = self.exercise
        expected = exercise.reference(*arguments).double() if not call.grad else None
        if call.grad and not exercise.judge_calls:
            expected = _gradient(exercise.reference, arguments, cotangent)
        like = first if call.grad else torch.empty(expected.shape, dtype=exercise.output_dtype or first.dtype)
        return Made(case, call, arguments, cotangent, expected, like)

    # -- the verdict -------------------------------------------------------------------------------------

    def verdict(self) -> Verdict:
        self._plan()
        seen = self._look()
        self._replay()
        launched = self._about_launches(seen)
        exercise = self.exercise
        findings = [self._of_case(case) for case in exercise.cases]
        finding = self._with_tail(self._overall(findings))
        if finding is None or finding.slug in (
            Slug.WRONG_VALUE, Slug.WRONG_RATE, Slug.SAME_MASK, Slug.SEED_IGNORED
        ):  # fmt: skip
            finding = launched or finding or self._idle() or self._refused()
        passed = finding is None
        return Verdict(
            exercise=exercise.name,
            passed=passed,
            score=exercise.points if passed else 0,
            points=exercise.points,
            backend=self.judge.backend,
            finding=quoted(finding, self.source),
            cases=tuple(
                CaseResult(case.name, quoted(found, self.source), self._map(case) if found else None)
                for case, found in zip(exercise.cases, findings, strict=True)
            ),
        )

    def _of_case(self, case: Case) -> Finding | None:
        made = [m for m in self.made if m.case is case]
        if missing := next((m.finding for m in made if m.finding), None):
            refused = Tag.OPTIONAL in case.about and missing.slug == Slug.RUNTIME_ERROR
            return None if refused else missing
        return self._about(made)

    def _about(self, made: list[Made]) -> Finding | None:
        if self.exercise.judge_calls:
            return self.exercise.judge_calls([m for m in made if m.got.numel()]) if made[0].got.numel() else None
        return next((f for f in (diagnose(self._observed(m)) for m in made) if f), None)

    def _map(self, case: Case) -> ErrorMap | None:
        """The map of the first call of a case that is wrong, if it can be drawn."""
        calls = [made for made in self.made if made.case is case]
        whole = [made for made in calls if made.got is not None]
        if whole and len(whole) == len(calls) and self.exercise.nearest:
            nearest = self.exercise.nearest(whole)
            drawn = (error_map(self._observed(made, *each)) for made, each in zip(whole, nearest, strict=True))
        else:
            known = [made for made in calls if made.map or made.got is not None and made.expected is not None]
            drawn = (made.map or error_map(self._observed(made)) for made in known)
        return next(filter(None, drawn), None)

    def _overall(self, findings: list[Finding | None]) -> Finding | None:
        cases = self.exercise.cases
        if not self.exercise.judge_calls and not any(m.finding for m in self.made):
            observations = [self._observed(m) for m in self.made]
            return overall(observations, [diagnose(o) for o in observations])
        failed = [(Tag.SHORT in c.about, bool(c.about & UNUSUAL), f.slug.rank, f) for c, f in zip(cases, findings) if f]
        return min(failed, key=lambda each: each[:3])[3] if failed else None

    def _with_tail(self, finding: Finding | None) -> Finding | None:
        """Changes the finding about an unwritten output if only the last, ragged block of each call is unwritten."""
        if finding is None or finding.slug != Slug.UNWRITTEN_OUTPUT or not (block := self._ragged_block()):
            return finding
        means = f"They are in the last, ragged block (block size {block}): the grid size was rounded down."
        return replace(finding, slug=Slug.TAIL_WRONG, means=means, second=Slug.UNWRITTEN_OUTPUT)

    def _ragged_block(self) -> int | None:
        """The block size for which exactly the ragged last block of each output is unwritten, or None."""
        holes = [is_poison(m.got).flatten() for m in self.made if m.got is not None]

        def only_the_rest(hole, block):
            rest = torch.arange(len(hole)) >= len(hole) // block * block
            return torch.equal(hole, rest) or len(hole) < block and not hole.any()

        longest = max(map(len, holes), default=0)
        blocks = (1 << k for k in range(4, longest.bit_length()))
        return next((block for block in blocks if all(only_the_rest(hole, block) for hole in holes)), None)

    # -- the programs ------------------------------------------------------------------------------------

    def _plan(self) -> None:
        """Traces the programs. Calls under jit share one if nothing that is traced differs. Plain calls do not."""
        self.programs: list[Asked] = []
        self.kernels: dict[str, str] = {}  # their programs, by digest
        shared: dict[JaxProgram, Asked] = {}
        for made in self.made:
            request = requested(made)
            made.program = shared.get(request) if made.call.jit else None
            if made.program is None:
                made.program = Asked(request)
                self.programs.append(made.program)
                if made.call.jit:
                    shared[request] = made.program
        request = JaxPlanRequest(self.source, self.exercise.entry, tuple(each.request for each in self.programs))
        reports = self.judge.run(self.exercise, request).by_case(len(self.programs))
        for report in reports.values():
            self.kernels |= report.programs if isinstance(report, Report) else {}
        for number, planned in enumerate(self.programs):
            case = next(made.case for made in self.made if made.program is planned)
            self._take_trace(planned, case, reports.get(number))

    def _take_trace(self, planned: Asked, case: Case, report) -> None:
        if report is None:  # an earlier trace ended the process
            planned.finding = Finding("crash", f"The process ended before this call ({case.name}).")
        elif not isinstance(report, Report) or report.trace is None:
            planned.finding = self._trouble(case, report, "plan")
            planned.finding = planned.finding or Finding("crash", f"No program came back ({case.name}).")
        else:
            try:
                planned.program, planned.trace = read(report.trace.get("program")), report.trace
            except ProtocolError as error:
                garbled = Report(0, error=Trouble("garbled", message=str(error)))
                planned.finding = self._trouble(case, garbled, "plan")

    def _look(self) -> Seen | None:
        """What the programs do; None if there are none. A program that is not evaluated gets a finding."""
        seen = None
        for planned in self.programs:
            if planned.program is None:
                continue
            call = next(made.call for made in self.made if made.program is planned)
            found = look(planned.program, call.grad, call.needs_kernel)
            if not planned.program.known or math.isinf(found.arithmetic.total()):  # in a loop it takes long, too
                planned.finding = found.about_arithmetic()
            if all(math.prod(a.shape) for a in planned.request.arguments if isinstance(a, Decoy)):
                seen = seen + found if seen else found
        return seen

    def _about_launches(self, seen: Seen | None) -> Finding | None:
        if seen is None:
            return None
        if not seen.kernels and all(made.got is not None and not made.got.any() for made in self.made):
            return Finding(
                "not-attempted",
                "The output is zero everywhere, and no Triton kernel is launched.",
                advice="write the kernel, call it with jt.triton_call(…), and return its result.",
            )
        return seen.finding()

    # -- the outputs -------------------------------------------------------------------------------------

    def _replay(self) -> None:
        """Evaluates the programs of all calls and stores the outputs."""
        for made in self.made:
            made.finding = made.program.finding
        calls = [made for made in self.made if not made.finding]
        if not calls:
            return
        packer = Packer()
        programs = [planned for planned in self.programs if not planned.finding]
        cases = tuple(described(made, programs.index(made.program), packer) for made in calls)
        request = JaxReplayRequest(self.source, tuple(planned.trace for planned in programs), cases, self.kernels)
        outcome = self.judge.run(self.exercise, request, packer.tensors, packer.output_size)
        reports = outcome.by_case(len(calls))
        for number, made in enumerate(calls):
            self._take(made, reports.get(number), outcome.output, cases[number].slot)

    def _take(self, made: Made, report, output: bytes, slot) -> None:
        if report is None:  # an earlier call ended the process
            made.finding = Finding("crash", f"The process ended before this call ({made.case.name}).")
            return
        made.finding = self._trouble(made.case, report, "replay")
        if made.finding:
            if isinstance(report, Report):
                seen = Observation(self.exercise, made.case, (), self.judge.backend, trouble=report.error)
                made.map = error_map(seen)
            return
        made.report = report
        if (wrong := _wrong_form(made)) is not None:
            made.finding = wrong
            return
        made.got = read_result(slot, output, made.like.dtype, made.like.shape)
        if race := self._about_races(made):
            made.got, made.finding = None, race

    def _observed(self, made: Made, expected: torch.Tensor | None = None, bound: Bound | None = None) -> Observation:
        """A call as an Observation, for the rules for tensors."""
        expected = made.expected if expected is None else expected
        bound = bound or self.exercise.bounds[made.like.dtype]
        return Observation(
            self.exercise,
            made.case,
            tuple(Strided(a) if isinstance(a, torch.Tensor) else a for a in made.arguments),
            self.judge.backend,
            result=replace(made.report.result, device="cpu" if self.judge.backend == "interpreter" else "cuda"),
            evidence=replace(made.report.evidence, launched=("kernel",)),  # launches are judged for the whole answer
            comparison=Comparison(made.got, expected, bound),
        )

    def _about_races(self, made: Made) -> Finding | None:
        """The finding about programs that raced, or that all worked on the same part."""
        seen = self._observed(made, expected=made.got.double())
        return wrong_program(seen) or diagnose(replace(seen, comparison=None))

    def _trouble(self, case: Case, report, stage: str) -> Finding | None:
        """The diagnosis of a call that ended with an error."""
        seen = {"exercise": self.exercise, "case": case, "arguments": (), "backend": self.judge.backend}
        if not isinstance(report, Report):
            return diagnose(Observation(**seen, stage=stage, exceeded=report.exceeded, death=report.death))
        if report.error is None:
            return None if report.result else Finding("crash", f"No result came back ({case.name}).")
        trouble = report.error
        if trouble.type == "NotImplementedError" and "triton_call" in trouble.message:  # not the learner's own
            trouble = replace(trouble, type="Unsupported")
        in_kernel = trouble.construct == "kernel"
        finding = diagnose(Observation(**seen, stage="replay" if in_kernel else "plan", trouble=trouble))
        return _explained(finding, trouble)

    def _idle(self) -> Finding | None:
        """The finding about kernels whose result is not used.

        The GPU does not repeat this check, because the executor did it before.
        """
        first = [made for made in self.made if made.case is self.exercise.cases[0]]
        if not any(made.report and made.report.evidence.idle for made in first):
            return None
        return Finding(
            "no-triton-kernel",
            "The result is still right when every kernel is empty.",
            "The kernel runs, but its result is not used.",
            "return the result of jt.triton_call.",
        )

    def _refused(self) -> Finding | None:
        """What a compiler refuses, of the kernels that JAX launched."""
        launches = (each for planned in self.programs if planned.program for each in planned.program.launches())
        steps = [{"op": "launch", "kernel": e.kernel, "program": e.program, "options": e.options} for e in launches]
        return compiling.refusal(self.judge, self.exercise, self.source, self.kernels, [{"steps": steps}])


def _gradient(reference, arguments: tuple, cotangent: torch.Tensor) -> torch.Tensor:
    """The gradient of sum(reference(*arguments) * cotangent) with respect to the first argument, in float64."""
    first, *rest = arguments
    first = first.double().requires_grad_()
    (reference(first, *rest).double() * cotangent.double()).sum().backward()
    return first.grad


def _wrong_form(made: Made) -> Finding | None:
    result = made.report.result
    shape, dtype = tuple(made.like.shape), dtype_name(made.like.dtype)
    what = "The gradient" if made.call.grad else "The output"
    if result.shape != shape:
        return Finding(
            "wrong-shape",
            f"{what} has shape {result.shape}, expected {shape} ({made.case.name}).",
            advice="give out_shape the shape of the output: jax.ShapeDtypeStruct(x.shape, x.dtype).",
        )
    if result.dtype != dtype:
        return Finding(
            "wrong-dtype",
            f"{what} is {result.dtype}, expected {dtype} ({made.case.name}).",
            advice="give out_shape the dtype of the output. tl.store converts to it.",
        )
    return None


def _explained(finding: Finding, trouble) -> Finding:
    """Adds the usual reason to an error of JAX: its message only says what happened inside JAX."""
    if finding.slug != "runtime-error":
        return finding
    text = f"{trouble.type}: {trouble.message}"
    if "bwd rule" in text:
        return replace(
            finding,
            means="The backward function must return one gradient for each argument, with the shape of that argument.",
            advice="return dx, None, None: the gradient of x, and None for p and for the seed.",
        )
    if "JVP" in text or "ifferentiation" in text:
        return replace(
            finding,
            means="JAX cannot see inside a Triton kernel, so it cannot differentiate it.",
            advice="define the gradient with jax.custom_vjp: a forward and a backward function.",
        )
    if "Tracer" in text or "traced" in text or "hashable" in text or "nondiff_argnums" in text:
        return replace(
            finding,
            means="Under jax.jit the seed is a traced array, not a number: its value is known only at run time.",
            advice="pass jnp.asarray(seed, jnp.int32) to jt.triton_call after x, and tl.load it in the kernel.",
        )
    return finding
