"""Judges exercises whose function takes and returns JAX arrays.

JAX cannot be planned on decoys, so the learner's Python runs confined in the process that makes the results.
`Exercise.calls` lists the calls of each case. `Exercise.judge_calls` finds what is wrong with the outputs; without it,
the comparison and the rules for tensors do.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from importlib import metadata

import torch

from ..box.wire import Report
from ..box.wire.layout import Packer, read_result
from ..box.wire.requests import Array, JaxCall, JaxRequest, Static, Traced
from ..diagnosis import Observation, diagnose, overall, wrong_program
from ..diagnosis.comparison import Comparison
from ..exercises.spec import UNUSUAL, Call, Case, Cotangent, Exercise, Strided, Tag, Varying
from ..tensors import dtype_name, is_poison
from ..verdict import CaseResult, Finding, Slug, Verdict

OLDEST_TRITON = (3, 6)  # the oldest version that jax-triton can launch on a GPU


class JaxMissing(RuntimeError):
    """JAX is missing where answers are judged, or does not fit this Triton. The message says what to install."""


def require_jax(backend: str) -> None:
    on_gpu = backend != "interpreter"
    needed = {"jax": "jax"} | ({"jax_triton": "jax-triton"} if on_gpu else {})
    missing = [package for module, package in needed.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise JaxMissing(f"this exercise needs {' and '.join(missing)}: pip install {' '.join(missing)}")
    if on_gpu and tuple(int(n) for n in _triton().split(".")[:2]) < OLDEST_TRITON:
        raise JaxMissing(
            f"this exercise needs Triton {OLDEST_TRITON[0]}.{OLDEST_TRITON[1]} or newer on a GPU, because jax-triton "
            f"{metadata.version('jax-triton')} needs it; installed is {_triton()}. TRITON_INTERPRET=1 judges without "
            "the GPU"
        )


def _triton() -> str:
    import triton

    return triton.__version__


@dataclass
class Made:
    """One call: its arguments as tensors and numbers, and its output or the finding that says why it has none."""

    case: Case
    call: Call
    arguments: tuple
    cotangent: torch.Tensor | None
    expected: torch.Tensor | None  # float64; None if the exercise does not compare with it
    like: torch.Tensor  # a tensor of the output's shape and dtype
    report: Report | None = None
    got: torch.Tensor | None = None
    finding: Finding | None = None


class JaxJudgement:
    """One answer to an exercise of kind "jax"."""

    def __init__(self, judge, exercise: Exercise, source: str, seed: int):
        require_jax(judge.backend)
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
        arguments = tuple(_value(a, call.variant) for a in drawn if not isinstance(a, Cotangent))
        first = next(a for a in arguments if isinstance(a, torch.Tensor))
        exercise = self.exercise
        expected = exercise.reference(*arguments).double() if not call.grad else None
        if call.grad and not exercise.judge_calls:
            expected = _gradient(exercise.reference, arguments, cotangent)
        like = first if call.grad else torch.empty(expected.shape, dtype=exercise.output_dtype or first.dtype)
        return Made(case, call, arguments, cotangent, expected, like)

    # -- the verdict -------------------------------------------------------------------------------------

    def verdict(self) -> Verdict:
        launched = self._run()
        exercise = self.exercise
        findings = [self._of_case(case) for case in exercise.cases]
        finding = self._with_tail(self._overall(findings))
        if finding is None or finding.slug in (
            Slug.WRONG_VALUE, Slug.WRONG_RATE, Slug.SAME_MASK, Slug.SEED_IGNORED
        ):  # fmt: skip
            finding = launched or finding or self._without_kernels()
        passed = finding is None
        return Verdict(
            exercise=exercise.name,
            passed=passed,
            score=exercise.points if passed else 0,
            points=exercise.points,
            backend=self.judge.backend,
            finding=finding,
            cases=tuple(CaseResult(c.name, f) for c, f in zip(exercise.cases, findings)),
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

    # -- running -----------------------------------------------------------------------------------------

    def _run(self) -> Finding | None:
        """Runs all calls and stores their outputs. Returns the finding about the launches, if there is one."""
        outcome, slots = self._box(self.made)
        reports = outcome.by_case(len(self.made) + 1)
        for index, made in enumerate(self.made):
            self._take(made, reports.get(index), outcome.output, slots[index])
        return self._about_launches(reports.get(len(self.made)))

    def _box(self, calls: list[Made], empty_kernels: bool = False):
        packer = Packer()
        described = tuple(_described(made, packer) for made in calls)
        request = JaxRequest(self.source, self.exercise.entry, described, empty_kernels)
        outcome = self.judge.run(self.exercise, request, packer.tensors, packer.output_size)
        return outcome, [call.slot for call in described]

    def _take(self, made: Made, report, output: bytes, slot) -> None:
        if report is None:  # an earlier call ended the process
            made.finding = Finding("crash", f"The process ended before this call ({made.case.name}).")
            return
        made.finding = self._trouble(made.case, report)
        if made.finding:
            return
        made.report = report
        if (wrong := _wrong_form(made)) is not None:
            made.finding = wrong
            return
        made.got = read_result(slot, output, made.like.dtype, made.like.shape)
        if race := self._about_races(made):
            made.got, made.finding = None, race

    def _observed(self, made: Made, expected: torch.Tensor | None = None) -> Observation:
        """A call as an Observation, for the rules for tensors."""
        expected = made.expected if expected is None else expected
        bound = self.exercise.bounds[made.like.dtype]
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

    def _trouble(self, case: Case, report) -> Finding | None:
        """The diagnosis of a call that ended with an error."""
        seen = {"exercise": self.exercise, "case": case, "arguments": (), "backend": self.judge.backend}
        if not isinstance(report, Report):
            return diagnose(Observation(**seen, exceeded=report.exceeded, death=report.death))
        if report.error is None:
            return None if report.result else Finding("crash", f"No result came back ({case.name}).")
        trouble = report.error
        if trouble.type == "NotImplementedError" and "triton_call" in trouble.message:  # not the learner's own
            trouble = replace(trouble, type="Unsupported")
        in_kernel = trouble.construct == "kernel"
        finding = diagnose(Observation(**seen, stage="replay" if in_kernel else "plan", trouble=trouble))
        return _explained(finding, trouble)
    def _about_launches(self, report) -> Finding | None:
        if not isinstance(report, Report):
            return None
        if report.error:
            return self._trouble(self.exercise.cases[0], report) if report.error.kind == "not-allowed" else None
        traced = report.value if isinstance(report.value, dict) else {}
        kernels, arithmetic = traced.get("kernels"), traced.get("arithmetic")
        if not kernels:
            return Finding(
                "no-triton-kernel",
                "No Triton kernel is launched between the input and the output.",
                "A Triton kernel must compute the result.",
                "call your kernel with jt.triton_call(…), and return its result.",
            )
        if arithmetic and isinstance(arithmetic, list):
            return Finding(
                "no-triton-kernel",
                f"JAX computes part of the result outside of the kernel: {', '.join(map(str, arithmetic[:4]))}.",
                "The kernel must do all the arithmetic: each operation outside of it can cost one more pass over "
                "memory.",
                "keep reshapes, casts and the call, and move the arithmetic into the kernel.",
            )
        return None

    def _without_kernels(self) -> Finding | None:
        """Runs the answer with empty kernels. If the result is still right, the kernels did not contribute to it.

        The GPU does not repeat this check, because the interpreter did it before.
        """
        if self.judge.backend != "interpreter":
            return None
        first = [m for m in self.made if m.case is self.exercise.cases[0]]
        tried = [replace(m) for m in (first[-2:] if first[-1].call.grad else first[-1:])]
        outcome, slots = self._box(tried, empty_kernels=True)
        reports = {r.case: r for r in outcome.reports if r.case is not None}
        for index, made in enumerate(tried):
            report = reports.get(index)
            if report is None or report.result is None:
                return None
            self._take(made, report, outcome.output, slots[index])
        if any(m.got is None for m in tried) or self._about(tried):
            return None
        return Finding(
            "no-triton-kernel",
            "The result is still right when every kernel is empty.",
            "The kernel runs, but its result is not used.",
            "return the result of jt.triton_call.",
        )


def _described(made: Made, packer: Packer) -> JaxCall:
    """A call for the box. Integers are traced under jit, such as the course's seeds. Other numbers are static."""
    call = made.call
    return JaxCall(
        arguments=tuple(
            Array(packer.tensor(a)) if isinstance(a, torch.Tensor) else Traced(a) if type(a) is int else Static(a)
            for a in made.arguments
        ),
        slot=packer.slot(made.like.nbytes),
        jit=call.jit,
        grad=call.grad,
        cotangent=packer.tensor(made.cotangent) if call.grad else None,
        needs_kernel=call.needs_kernel,
    )


def _value(argument, variant: int):
    if isinstance(argument, Varying):
        return argument.values[variant]
    return argument.values if isinstance(argument, Strided) else argument


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
