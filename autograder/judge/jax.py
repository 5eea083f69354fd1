"""Exercises whose function takes and returns JAX arrays: leaky ReLU with dropout, and its gradient.

The mask is random, in any mapping from element to random number, so it is judged by what must hold for every
right one. Statistics are bounds, not tests at a level: a right answer is refused with a probability below
1e-9 a judgement (each of fewer than 100 bounds is exceeded with a probability of at most 1e-12).
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations

import torch

from ..box.wire import Report
from ..box.wire.layout import Packer, read_result
from ..box.wire.requests import Array, JaxCall, JaxRequest, Static, Traced
from ..diagnosis import PRIORITY, Observation, diagnose, wrong_program
from ..diagnosis.comparison import Comparison
from ..exercises.dropout import BOUNDS, SLOPE, gradient, kept
from ..exercises.spec import Case, Exercise
from ..tensors import close, dtype_name, is_poison
from ..verdict import CaseResult, Finding, Verdict

ALPHA = 1e-12  # how often a right mask exceeds one bound, or one family of bounds
SEEDS = 1 << 30
# What explains an answer as a whole comes first.
ORDER = (
    *PRIORITY[: PRIORITY.index("runtime-error")], "wrong-program-id", "out-of-bounds-store", "out-of-bounds-load",
    "runtime-error", "race", "unwritten-output", "not-scaled", "constant-factor", "wrong-value", "low-precision",
    "same-mask", "wrong-rate", "seed-ignored", "nan",
)  # fmt: skip


class JaxMissing(RuntimeError):
    """JAX is not installed where answers are judged; the message says what to install."""


def require_jax(backend: str) -> None:
    needed = {"jax": "jax"} if backend == "interpreter" else {"jax": "jax", "jax_triton": "jax-triton"}
    missing = [package for module, package in needed.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise JaxMissing(f"this exercise needs {' and '.join(missing)}: pip install {' '.join(missing)}")


@dataclass(frozen=True)
class Call:
    """One call of the learner's function: `seed` counts from a seed that the judgement draws."""

    seed: int
    jit: bool = False
    grad: bool = False


PLAIN = (Call(0, jit=True),)
REPEAT = (Call(0), Call(0), Call(0, jit=True), Call(1, jit=True), Call(2, jit=True))
RATE = (Call(0, jit=True), Call(1, jit=True))


def calls_of(case: Case, gradients: bool) -> tuple[Call, ...]:
    if gradients:
        each = (Call(0), Call(0, jit=True), Call(1, jit=True)) if "repeat" in case.about else PLAIN
        return tuple(replace(call, grad=grad) for call in each for grad in (False, True))
    return REPEAT if "repeat" in case.about else RATE if "rate" in case.about else PLAIN


@dataclass
class Made:
    """What one call gave: an array, or the finding that says why there is none."""

    case: Case
    call: Call
    x: torch.Tensor
    p: float
    w: torch.Tensor | None
    got: torch.Tensor | None = None
    finding: Finding | None = None

    @cached_property
    def mask(self) -> torch.Tensor:
        """True where an element was kept. No element of x is zero, so zeros are dropped ones."""
        return self.got != 0


class JaxJudgement:
    """One answer to an exercise of kind "jax"."""

    def __init__(self, judge, exercise: Exercise, source: str, seed: int):
        require_jax(judge.backend)
        self.judge, self.exercise, self.source = judge, exercise, source
        self.gradients = exercise.name.endswith("_grad")
        generator = torch.Generator().manual_seed(seed & (1 << 62) - 1)
        first, other = (int(torch.randint(1000, SEEDS, (), generator=generator)) for _ in range(2))
        self.seeds = (first, first + 1, other)
        self.drawn = [case.make(generator) for case in exercise.cases]
        self.made = [
            Made(case, call, x.values, p, w[0].values if w else None)
            for case, (x, p, *w) in zip(exercise.cases, self.drawn)
            for call in calls_of(case, self.gradients)
        ]

    # -- the verdict -------------------------------------------------------------------------------------

    def verdict(self) -> Verdict:
        launched = self._run()
        findings = [self._of_case(case) for case in self.exercise.cases]
        failed = [f for f in findings if f]
        telling = [f for c, f in zip(self.exercise.cases, findings) if f and "short" not in c.about]
        finding = min(telling or failed, key=_rank) if failed else None
        if finding and finding.slug == "unwritten-output" and (block := self._ragged_block()):
            finding = replace(
                finding,
                slug="tail-wrong",
                means=f"They are the last, ragged block (block size {block}): the grid is rounded down.",
                second="unwritten-output",
            )
        if finding is None or finding.slug in ("wrong-value", "wrong-rate", "same-mask", "seed-ignored"):
            finding = launched or finding or self._without_kernels()
        passed = finding is None
        return Verdict(
            exercise=self.exercise.name,
            passed=passed,
            score=self.exercise.points if passed else 0,
            points=self.exercise.points,
            backend=self.judge.backend,
            finding=finding,
            cases=tuple(CaseResult(c.name, f) for c, f in zip(self.exercise.cases, findings)),
        )

    def _ragged_block(self) -> int | None:
        """The block size of which every output lacks the remainder, and nothing else."""
        holes = [is_poison(m.got).flatten() for m in self.made if m.got is not None]

        def only_the_rest(hole, block):
            rest = torch.arange(len(hole)) >= len(hole) // block * block
            return torch.equal(hole, rest) or len(hole) < block and not hole.any()

        longest = max(map(len, holes), default=0)
        blocks = (1 << k for k in range(4, longest.bit_length()))
        return next((block for block in blocks if all(only_the_rest(hole, block) for hole in holes)), None)

    def _of_case(self, case: Case) -> Finding | None:
        made = [m for m in self.made if m.case is case]
        if missing := next((m.finding for m in made if m.finding), None):
            return None if "optional" in case.about and missing.slug == "runtime-error" else missing
        findings = [about_values(m) for m in made if not m.call.grad]
        if not any(findings) and self.gradients:
            findings += [about_gradient(m, forward) for forward, m in zip(made[::2], made[1::2])]
        if not any(findings):
            findings += [about_masks([m for m in made if not m.call.grad], self.seeds)]
        failed = [f for f in findings if f]
        return min(failed, key=_rank) if failed else None

    # -- running -----------------------------------------------------------------------------------------

    def _run(self) -> Finding | None:
        """Fills in what every call made. Returns the finding about what was launched, if there is one."""
        outcome, slots = self._box(self.made)
        reports = outcome.by_case(len(self.made) + 1)
        for index, made in enumerate(self.made):
            self._take(made, reports.get(index), outcome.output, slots[index])
        return self._about_launches(reports.get(len(self.made)))

    def _box(self, calls: list[Made], empty_kernels: bool = False):
        packer = Packer()
        described = tuple(self._described(made, packer) for made in calls)
        request = JaxRequest(self.source, self.exercise.entry, described, empty_kernels)
        outcome = self.judge.run(self.exercise, request, packer.tensors, packer.output_size)
        return outcome, [call.slot for call in described]

    def _described(self, made: Made, packer: Packer) -> JaxCall:
        return JaxCall(
            arguments=(Array(packer.tensor(made.x)), Static(made.p), Traced(self.seeds[made.call.seed])),
            slot=packer.slot(made.x.nbytes),
            jit=made.call.jit,
            grad=made.call.grad,
            cotangent=packer.tensor(made.w) if made.call.grad else None,
            needs_kernel=0 < made.p < 1,
        )

    def _take(self, made: Made, report, output: bytes, slot) -> None:
        if report is None:  # an earlier call ended the process
            made.finding = Finding("crash", f"The process ended before this call ({made.case.name}).")
            return
        made.finding = self._trouble(made.case, report)
        if made.finding:
            return
        result = report.result
        dtype = dtype_name(made.x.dtype)
        what = "The gradient" if made.call.grad else "The output"
        if result.shape != tuple(made.x.shape):
            made.finding = Finding(
                "wrong-shape",
                f"{what} has shape {result.shape}, expected {tuple(made.x.shape)} ({made.case.name}).",
                advice="let out_shape have x.shape: jax.ShapeDtypeStruct(x.shape, x.dtype).",
            )
        elif result.dtype != dtype:
            made.finding = Finding(
                "wrong-dtype",
                f"{what} is {result.dtype}, expected {dtype} ({made.case.name}).",
                advice="let out_shape have x.dtype; tl.store converts on the way out.",
            )
        else:
            made.got = read_result(slot, output, made.x.dtype, made.x.shape)
            if race := self._about_races(made, report):
                made.got, made.finding = None, race

    def _about_races(self, made: Made, report: Report) -> Finding | None:
        """Programs that got into each other's way, or all worked on the same part."""
        unwritten = Comparison(made.got, made.got.double(), BOUNDS[made.x.dtype])
        seen = Observation(
            self.exercise,
            made.case,
            (),
            self.judge.backend,
            result=replace(report.result, device=_device(self)),
            evidence=replace(report.evidence, launched=("kernel",)),
        )
        return wrong_program(replace(seen, comparison=unwritten)) or diagnose(seen)

    def _trouble(self, case: Case, report) -> Finding | None:
        """What diagnosis says of a call that ended in an error."""
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
                "Mask, activation and scale have to come out of a kernel.",
                "call your kernel with jt.triton_call(…), and return what it gives.",
            )
        if arithmetic and isinstance(arithmetic, list):
            return Finding(
                "no-triton-kernel",
                f"JAX computes part of the result beside the kernel: {', '.join(map(str, arithmetic[:4]))}.",
                "Mask, activation and scale belong into the kernel: each operation outside of it may cost one more "
                "pass over memory.",
                "keep reshapes, casts and the call; move the arithmetic into the kernel.",
            )
        return None

    def _without_kernels(self) -> Finding | None:
        """The same answer with every kernel emptied: had the kernels no part in the result, it is still right.

        Of a card nothing is asked that the interpreter was asked before.
        """
        if self.judge.backend != "interpreter":
            return None
        case = self.exercise.cases[0]
        tried = [replace(m) for m in self.made if m.case is case][-2 if self.gradients else -1 :]
        outcome, slots = self._box(tried, empty_kernels=True)
        reports = {r.case: r for r in outcome.reports if r.case is not None}
        for index, made in enumerate(tried):
            report = reports.get(index)
            if report is None or report.result is None:
                return None
            self._take(made, report, outcome.output, slots[index])
        if any(m.got is None for m in tried):
            return None
        # an output that was zero before the launch stays so: as a mask it would drop everything
        same = all(m.mask.any() and not about_values(m) for m in tried if not m.call.grad)
        if self.gradients and same:
            same = not about_gradient(tried[1], tried[0])
        if not same:
            return None
        return Finding(
            "no-triton-kernel",
            "The result is the same when every kernel is emptied.",
            "The kernel runs, but what it computes is not used.",
            "return what jt.triton_call gives.",
        )


def _device(judgement: JaxJudgement) -> str:
    return "cpu" if judgement.judge.backend == "interpreter" else "cuda"


def _rank(finding: Finding) -> int:
    return ORDER.index(finding.slug) if finding.slug in ORDER else len(ORDER)


def _explained(finding: Finding, trouble) -> Finding:
    """JAX's errors say what happened inside JAX; these are the usual reasons."""
    if finding.slug != "runtime-error":
        return finding
    text = f"{trouble.type}: {trouble.message}"
    if "bwd rule" in text:
        return replace(
            finding,
            means="The backward function has to return one gradient for each argument, of its argument's shape.",
            advice="return dx, None, None: the gradient of x, and none for p and the seed.",
        )
    if "JVP" in text or "ifferentiation" in text:
        return replace(
            finding,
            means="JAX cannot look into a Triton kernel, so it cannot differentiate it.",
            advice="give the function a rule: jax.custom_vjp, with a forward and a backward function.",
        )
    if "Tracer" in text or "traced" in text or "hashable" in text or "nondiff_argnums" in text:
        return replace(
            finding,
            means="Under jax.jit the seed is no number but a traced array: its value comes when the function runs.",
            advice="pass jnp.asarray(seed, jnp.int32) to jt.triton_call, beside x, and tl.load it in the kernel.",
        )
    return finding


# -- values --------------------------------------------------------------------------------------------------------


def about_values(made: Made) -> Finding | None:
    """Is every element either dropped, or leaky(x) / (1 - p)?"""
    if not made.got.numel():
        return None
    bound, got = BOUNDS[made.x.dtype], made.got.double()
    expected = kept(made.x, made.p)
    wrong = (got != 0) & ~close(got, expected, bound.relative, bound.absolute)
    if bool(is_poison(made.got).any()):
        return _unwritten(made)
    if not bool(torch.isfinite(got).all()):
        return _not_finite(made)
    if made.p == 1 and bool(made.mask.any()):
        return Finding("wrong-rate", f"{int(made.mask.sum())} elements are kept at p = 1, which drops all.", *_COMPARE)
    if bool(wrong.any()):
        return _wrong_kept(made, wrong)
    if made.p == 0 and not bool(made.mask.all()):
        dropped = int((~made.mask).sum())
        return Finding("wrong-rate", f"{dropped} elements are dropped at p = 0, which keeps all.", *_COMPARE)
    negative = made.x < 0
    kept_signs = made.mask[negative].any(), made.mask[~negative].any()
    if made.p < 0.9 and int(negative.sum()) >= 64 and bool(kept_signs[1]) and not bool(kept_signs[0]):
        return Finding(
            "wrong-value",
            f"Every negative element became zero ({made.case.name}).",
            "That is ReLU. Leaky ReLU multiplies a negative number by 0.01.",
            "tl.where(x >= 0, x, 0.01 * x)",
        )
    return None


_COMPARE = (
    "An element is kept when its random number, in [0, 1), is at least p.",
    "compare with keep = random >= p.",
)


def _unwritten(made: Made) -> Finding:
    holes = is_poison(made.got)
    first = tuple(int(i) for i in holes.nonzero()[0])
    return Finding(
        "unwritten-output",
        f"{int(holes.sum())} of {holes.numel()} elements were never written, the first at {first} ({made.case.name}).",
        "No program reached them: the grid is too small, or the store's mask is too narrow.",
        "launch triton.cdiv(x.size, BLOCK_SIZE) programs, and mask with offsets < n.",
    )


def _not_finite(made: Made) -> Finding:
    count = int((~torch.isfinite(made.got)).sum())
    happened = f"{count} of {made.got.numel()} elements are NaN or infinite ({made.case.name})."
    if made.p == 1:
        return Finding(
            "nan",
            happened,
            "At p = 1 the scale 1 / (1 - p) is infinite, and 0 times infinity is NaN.",
            "choose, do not multiply: tl.where(keep, x / (1 - p), 0.0).",
        )
    return Finding("nan", happened, advice="look at the scale, and at what masked-off lanes hold.")


def _wrong_kept(made: Made, wrong: torch.Tensor) -> Finding:
    """Kept elements have a value that they should not have: which one?"""
    bound = BOUNDS[made.x.dtype]
    x, got = made.x.double(), made.got.double()
    leaky = torch.where(x >= 0, x, SLOPE * x)
    expected = kept(made.x, made.p)
    at = tuple(int(i) for i in wrong.nonzero()[0])
    happened = f"Element {at} is {float(got[at]):.6g}; kept, it would be {float(expected[at]):.6g} ({made.case.name})."
    nonzero = got != 0

    def all_are(value):
        return bool(close(got[nonzero], value[nonzero], 4 * bound.relative, bound.absolute).all())

    if all_are(leaky) and made.p > 0:
        if bool(nonzero.all()):
            return Finding("wrong-rate", f"No element is dropped, and none is scaled ({made.case.name}).", *_COMPARE)
        return Finding(
            "not-scaled",
            happened,
            "Kept elements were not scaled: the sum of a layer would shrink by 1 - p.",
            "divide what is kept by 1 - p.",
        )
    if all_are(x / (1 - made.p)) or all_are(x):
        return Finding(
            "wrong-value",
            happened,
            "Negative elements were not multiplied by 0.01: this is dropout without leaky ReLU.",
            "tl.where(x >= 0, x, 0.01 * x), before the dropout.",
        )
    rest = wrong & close(got, leaky, 4 * bound.relative, bound.absolute)
    if made.p > 0 and bool((rest == wrong).all()) and not bool((got == 0).any()):
        return Finding(
            "wrong-value",
            happened,
            "Elements that were not scaled up were left as they are; a dropped element is 0.",
            "tl.where(keep, x / (1 - p), 0.0)",
        )
    ratio = got[nonzero] / leaky[nonzero]
    middle = float(ratio.median())
    if float((ratio - middle).abs().max()) <= 8 * bound.relative * abs(middle) + 1e-12:
        return Finding(
            "constant-factor",
            f"{happened} Every kept element is {middle:.6g} times leaky(x), expected {1 / (1 - made.p):.6g}.",
            "The probability of being kept is 1 - p; 1 / p scales by that of being dropped."
            if made.p and abs(middle * made.p - 1) < 1e-3
            else "Everything is right up to one factor.",
            "divide what is kept by 1 - p.",
        )
    if bool(close(got[nonzero], expected[nonzero], 0.01, 1e-6).all()):
        error = float((got / expected - 1)[wrong].abs().max())
        return Finding(
            "low-precision",
            f"{happened} Errors reach {error:.1e}.",
            "A number on the way was kept in half precision: 8 or 11 bits hold about three digits.",
            "convert to float32 right after the load, x.to(tl.float32); the store converts back.",
        )
    if not bool((wrong & (x >= 0)).any()):
        slopes = got[wrong] * (1 - made.p) / x[wrong]
        happened += f" Only negative elements are wrong; their slope is {float(slopes.median()):.4g}, expected {SLOPE}."
        return Finding("wrong-value", happened, advice="multiply negative elements by 0.01, and positive ones by 1.")
    return Finding(
        "wrong-value",
        f"{happened} {int(wrong.sum())} of {wrong.numel()} elements are neither dropped nor right.",
        "An element may have been computed from another one: the offsets of load and store have to agree.",
        "work one program out by hand: which elements does it read, and where does it write?",
    )


# -- the mask ------------------------------------------------------------------------------------------------------


def about_masks(made: list[Made], seeds: tuple[int, ...]) -> Finding | None:
    """Same seed, same mask; other seed, other mask; the right share of elements, independent of each other."""
    case, p = made[0].case, made[0].p
    if not 0 < p < 1 or made[0].mask.numel() < 256:
        return None
    first: dict[int, Made] = {}
    for m in made:
        before = first.setdefault(m.call.seed, m)
        if not torch.equal(before.mask, m.mask):
            return _unsteady(before, m, seeds)
    masks = [m.mask for m in first.values()]
    k, n = sum(int(m.sum()) for m in masks), sum(m.numel() for m in masks)
    off = not plausible(k, n, 1 - p)
    rate = 1 - k / n if off else p
    # masks with a pattern of their own may agree by chance: the pattern comes first
    for mask in masks:
        if finding := about_pattern(mask, rate, case):
            return _same_for_two_seeds(masks, case, torch.equal) or finding
    if finding := _same_for_two_seeds(masks, case, partial(correlated, p=rate)):
        return finding
    return _wrong_rate(k, n, p, case) if off else None


def _same_for_two_seeds(masks: list[torch.Tensor], case: Case, alike) -> Finding | None:
    for mask, other in combinations(masks, 2):
        if alike(mask, other):
            share = float((mask == other).double().mean())
            return Finding(
                "seed-ignored",
                f"Two seeds gave {'the same mask' if share == 1 else f'masks that agree in {share:.0%}'} "
                f"({case.name}).",
                "Every call, every layer and every step would drop the same elements.",
                "give the seed to the generator: tl.rand(seed, offsets).",
            )
    return None


def _unsteady(before: Made, after: Made, seeds: tuple[int, ...]) -> Finding:
    how = "under jax.jit" if after.call.jit else "in a second call"
    return Finding(
        "seed-ignored",
        f"Seed {seeds[after.call.seed]} gave another mask {how} ({after.case.name}).",
        "The mask has to depend on the seed's value and the element, and on nothing else. An array that reaches the "
        "kernel is a pointer: its address is not its value.",
        "seed = tl.load(seed_ptr), then tl.rand(seed, offsets).",
    )


def _wrong_rate(k: int, n: int, p: float, case: Case) -> Finding:
    low, high = plausible_range(n, 1 - p)
    happened = (
        f"{k / n:.2%} of {n} elements are kept; with p = {p:g} it is {1 - p:.0%}, and chance stays between {low:.2%} "
        f"and {high:.2%} ({case.name})."
    )
    if plausible(k, n, p):
        means = "The comparison is the wrong way round: an element is kept with probability p."
        return Finding("wrong-rate", happened, means, _COMPARE[1])
    return Finding("wrong-rate", happened, *_COMPARE)


def about_pattern(mask: torch.Tensor, p: float, case: Case) -> Finding | None:
    """Are the decisions independent? Rows and columns by their share, all pairs at one distance by correlation."""
    means = "The same random numbers are used again: the generator gives one number for each pair (seed, offset)."
    advice = "give every element an offset of its own: pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)."
    for axis, name in ((1, "row"), (0, "column")):
        counts, size = mask.sum(axis).tolist(), mask.shape[axis]
        for index, k in enumerate(counts):
            if not plausible(k, size, 1 - p, ALPHA / len(counts)):
                happened = f"In {name} {index}, {k} of {size} elements are kept ({case.name})."
                return Finding("same-mask", happened, means, advice)
    distance = repeats(mask.flatten(), p)
    if distance is None:
        return None
    if distance == mask.shape[1]:
        happened = f"Rows have the same mask ({case.name})."
    elif distance == 1:
        happened = f"Neighbours share their fate ({case.name})."
    else:
        happened = f"The mask repeats itself after {distance} elements ({case.name})."
    return Finding("same-mask", happened, means, advice)


def plausible(k: int, n: int, q: float, alpha: float = ALPHA) -> bool:
    """Whether k of n is possible for n independent events of probability q.

    False for a right answer with probability at most alpha: Chernoff, P <= 2 exp(-n KL(k/n || q)).
    """
    return n * _divergence(k / n, q) <= math.log(2 / alpha)


def plausible_range(n: int, q: float) -> tuple[float, float]:
    """The shares that `plausible` accepts, to a thousandth of their distance from q."""

    def end(outer: float) -> float:
        inner = q
        for _ in range(30):
            middle = (inner + outer) / 2
            inner, outer = (middle, outer) if n * _divergence(middle, q) <= math.log(2 / ALPHA) else (inner, middle)
        return inner

    return end(0.0), end(1.0)


def _divergence(a: float, q: float) -> float:
    """Kullback-Leibler divergence of two coins, in nats."""
    parts = ((a, q), (1 - a, 1 - q))
    return sum(0.0 if x == 0 else math.inf if y <= 0 else x * math.log(x / y) for x, y in parts)


def correlated(mask: torch.Tensor, other: torch.Tensor, p: float) -> bool:
    """Whether two masks agree, or disagree, more than independent ones do: Azuma and Hoeffding's bound.

    The terms (kept - q)(kept' - q) have mean 0 and size at most c = max(p, q)^2, so their sum exceeds
    c sqrt(2 n ln(2 / alpha)) with probability at most alpha.
    """
    q = 1 - p
    total = float(((mask.double() - q) * (other.double() - q)).sum())
    return abs(total) > max(p, q) ** 2 * math.sqrt(2 * mask.numel() * math.log(2 / ALPHA))


def repeats(mask: torch.Tensor, p: float) -> int | None:
    """The distance at which a mask resembles itself most, if more than chance allows; bounds as in `correlated`."""
    n, q = mask.numel(), 1 - p
    centred = mask.double() - q
    spectrum = torch.fft.rfft(centred, 2 * n)
    sums = torch.fft.irfft(spectrum.abs() ** 2, 2 * n)[1:n]
    terms = torch.arange(n - 1, 0, -1, dtype=torch.float64)
    bounds = max(p, q) ** 2 * torch.sqrt(2 * terms * math.log(2 * n / ALPHA))
    excess = sums.abs() / bounds
    return int(excess.argmax()) + 1 if bool((excess > 1).any()) else None


# -- the gradient --------------------------------------------------------------------------------------------------


def about_gradient(made: Made, forward: Made) -> Finding | None:
    """Is it w * slope / (1 - p) where the forward pass kept an element, and 0 where it dropped it?"""
    bound, got, mask = BOUNDS[made.x.dtype], made.got.double(), forward.mask
    whole = gradient(made.x, made.p, made.w)
    expected = torch.where(mask, whole, 0.0)
    wrong = ~close(got, expected, 2 * bound.relative, bound.absolute)
    if not bool(wrong.any()):
        return None
    if bool(is_poison(made.got).any()):
        return _unwritten(made)
    if not bool(torch.isfinite(got).all()):
        return _not_finite(made)
    at = tuple(int(i) for i in wrong.nonzero()[0])
    happened = f"The gradient at {at} is {float(got[at]):.6g}, expected {float(expected[at]):.6g} ({made.case.name})."
    slope = torch.where(made.x >= 0, 1.0, SLOPE).double()
    scale = 1 / (1 - made.p) if made.p < 1 else 0.0
    for value, slug, means, advice in (
        (torch.where(mask, 0.0, whole), "wrong-rate",
         "Where the forward pass kept an element the gradient is 0, and the other way round.", _COMPARE[1]),
        (torch.zeros_like(got), "not-attempted", "The gradient is zero everywhere.", "write the backward function."),
        (whole / scale * mask if scale else whole, "not-scaled", "The derivative of x / (1 - p) is 1 / (1 - p).",
         "divide by 1 - p in the backward pass too."),
        (whole, "wrong-value", "Dropped elements get a gradient, but the output does not depend on them.",
         "draw the same mask again, from the same seed, and set the gradient of dropped elements to 0."),
        (made.w.double() * scale * mask, "wrong-value", "The derivative of leaky ReLU is 0.01 where x is negative.",
         "keep x for the backward pass, and multiply by tl.where(x >= 0, 1.0, 0.01)."),
        (torch.where(made.x >= 0, expected, 0.0), "wrong-value", "Negative elements got no gradient: that is ReLU's.",
         "multiply by tl.where(x >= 0, 1.0, 0.01)."),
        (slope * scale * mask, "wrong-value", "The gradient that comes in from behind is ignored.",
         "multiply by the gradient that the backward function receives."),
    ):  # fmt: skip
        if bool(close(got, value, 4 * bound.relative, bound.absolute).all()):
            return Finding(slug, happened, means, advice)
    elsewhere = (got != 0) != mask
    ratio = got[mask] / whole[mask]
    middle = float(ratio.median()) if len(ratio) > 1 else 0.0
    if not bool(elsewhere.any()) and float((ratio - middle).abs().max()) <= 8 * bound.relative * abs(middle):
        return Finding(
            "constant-factor",
            f"{happened} Every gradient is {middle:.6g} times the right one.",
            "Everything is right up to one factor.",
            "divide by 1 - p, once.",
        )
    if not bool(elsewhere.any()) and bool(close(got, expected, 0.01, 1e-6).all()):
        return Finding(
            "low-precision",
            happened,
            "A number on the way was kept in half precision: 8 or 11 bits hold about three digits.",
            "convert to float32 right after the load, .to(tl.float32); the store converts back.",
        )
    right = close(got, whole, 2 * bound.relative, bound.absolute) | (got == 0)
    if bool(elsewhere.any()) and bool(right.all()):
        return Finding(
            "seed-ignored",
            f"{happened} The backward pass used another mask than the forward pass: {int(elsewhere.sum())} elements "
            "differ.",
            "The mask is not kept, it is drawn again: same seed, same offsets, same mask.",
            "give the seed to the backward function, in the residuals, and use the same offsets.",
        )
    return Finding(
        "wrong-value",
        f"{happened} {int(wrong.sum())} of {wrong.numel()} elements are wrong.",
        advice="write down the derivative of one kept element: w · slope / (1 - p).",
    )
