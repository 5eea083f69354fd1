"""05_jax_dropout: leaky ReLU and dropout in one kernel, called from JAX, and its gradient.

Any element may be dropped, so an output is compared with the right output that is nearest to it: the same elements are
dropped there. Whether these are random is judged in `masks`, from all calls of a case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import torch

from workshop.syllabus import find

from ..tensors import close
from .design import large_matrices
from .masks import COMPARE, SMALLEST, judge_masks, plausible
from .spec import Bound, Call, Case, Cotangent, Exercise, Large, Mistake, Strided, Tag, Varying, integer

SLOPE = 0.01
# These allow for rounding: the slope, the scale and the product are each rounded once, in the narrowest dtype used.
BOUNDS = {torch.float32: Bound(2e-6, 1e-9), torch.float16: Bound(4e-3, 1e-6)}

# -- what is right, and what mistakes compute ----------------------------------------------------------------
# x: the input; y: the output of the forward pass, which says what was kept; dy: the weights of a gradient; dx: the
# gradient that came back.


def leaky(x: torch.Tensor, slope: float = SLOPE) -> torch.Tensor:
    x = x.double()
    return torch.where(x >= 0, x, slope * x)  # torch's own has another gradient at 0


def scale(p: float) -> float:
    """What a kept element is multiplied by."""
    return 1 / (1 - p) if p < 1 else 0.0


def reference(x: torch.Tensor, p: float, seed: int, y: torch.Tensor) -> torch.Tensor:
    """The right output that drops what `y` drops, in float64. Its gradient is the right gradient.

    NaN, where x is a number, is what was dropped by a product with 0. What is 0 because x is so small was kept.
    """
    dropped = (y == 0) & (x.abs() > SMALLEST) | y.isnan() & ~x.isnan()
    return torch.where(~dropped & (p < 1), leaky(x) * scale(p), 0.0)


def _forward(slug: str, value: Callable, explanation: str, advice: str, **more) -> Mistake:
    """A kept element is value(x, p, y). What is dropped is right."""

    def compute(x, p, seed, y):
        return torch.where(y != 0, value(x.double(), p, y), 0.0)

    return Mistake(slug, compute, explanation, advice, **more)


def _dropped_are_left(x, p, seed, y):
    kept = leaky(x) * scale(p)
    return torch.where(close(y.double(), kept, 1e-5, 1e-9), kept, leaky(x))


def _for_the_kept(x, p, y):
    """p as the probability of being kept: the scale fits it, and the rate, too."""
    k, n = int((y != 0).sum()), y.numel()
    if plausible(k, n, 1 - p, alpha=1e-4) or not plausible(k, n, p):
        raise ValueError
    return leaky(x) / p


def _with_its_slope(x, p, y):
    """Another slope: the one that the output has."""
    negative = (y != 0) & (x < 0) & torch.isfinite(x)
    return leaky(x, float((y.double() / x)[negative].median()) / scale(p)) * scale(p)


def _product(x, p, y):
    keep = ((y != 0) & ~y.isnan()).double()
    return keep * leaky(x) / torch.tensor(1 - p, dtype=torch.float64)


def _rounded(steps: int) -> Mistake:
    return _forward(
        "wrong-rate", lambda x, p, y: leaky(x) * scale(round(p * steps) / steps),
        f"The scale is that of p rounded to a multiple of 1/{steps}.", "use p as it is, without rounding it.",
    )  # fmt: skip


_SELECT = "select the value, do not multiply by the mask: tl.where(keep, x / (1 - p), 0.0)."
_ONCE = "divide kept elements by 1 - p, once."
_RELU = "use tl.where(x >= 0, x, 0.01 * x)."
MISTAKES = (
    Mistake("wrong-rate", lambda x, p, seed, y: leaky(x), "No element is dropped, and none is scaled.", COMPARE[1]),
    _forward("not-scaled", lambda x, p, y: leaky(x),
             "Kept elements were not scaled, so the expected sum of a layer changes by the factor 1 - p.",
             "Divide kept elements by 1 - p."),
    _forward("wrong-rate", _for_the_kept,
             "p is taken for the probability that an element is kept. It is that of a drop.", COMPARE[1]),
    _forward("constant-factor", lambda x, p, y: leaky(x) / p,
             "An element is kept with probability 1 - p. The factor 1 / p uses the probability of a drop.", _ONCE),
    _forward("constant-factor", lambda x, p, y: leaky(x) * (1 - p), "A kept element is multiplied by 1 - p.", _ONCE),
    *map(_rounded, (10, 16, 100, 128, 256)),
    _forward("wrong-value", lambda x, p, y: x * scale(p),
             "Negative elements were not multiplied by 0.01: this is dropout without leaky ReLU.", _RELU),
    _forward("wrong-value", lambda x, p, y: torch.where(x < 0, x, SLOPE * x) * scale(p),
             "The positive elements were multiplied by 0.01, and the negative ones were not.", _RELU),
    _forward("wrong-value", _with_its_slope, "The slope of negative elements is not 0.01.", _RELU),
    Mistake("wrong-value", _dropped_are_left, "Dropped elements still hold leaky(x). A dropped element must be 0.",
            "Use tl.where(keep, x / (1 - p), 0.0)."),
    _forward("nan", _product, "0 times infinity is NaN: the scale at p = 1, or an element of x, is infinite.", _SELECT,
             known_by_constant=True),
)  # fmt: skip


def _backward(slug: str, value: Callable, explanation: str, advice: str, **more) -> Mistake:
    """The gradient is value(of), of float64: kept (1 or 0), x, its slope, dy, scale, and dx, which came back."""

    def compute(x, p, seed, y, dy, dx):
        x, slope = x.double(), torch.where(x >= 0, 1.0, SLOPE).double()
        kept = (y != 0).double()
        return value(SimpleNamespace(kept=kept, x=x, slope=slope, dy=dy.double(), scale=scale(p), dx=dx.double()))

    return Mistake(slug, compute, explanation, advice, **more)


def _slope_by_dy(of: SimpleNamespace) -> torch.Tensor:
    return torch.where(of.dy >= 0, 1.0, SLOPE)


GRADIENT_MISTAKES = (
    _backward("not-attempted", lambda of: 0 * of.x, "The gradient of x is zero everywhere.",
              "Write the backward function. It returns the gradient of x first: dx, None, None.",
              known_by_constant=True),
    _backward("wrong-value", lambda of: of.dy, "The backward function returns dy as it came in.",
              "The gradient of a kept element is dy · slope / (1 - p). That of a dropped one is 0."),
    _backward("wrong-rate", lambda of: (1 - of.kept) * of.slope * of.dy * of.scale,
              "The gradient is 0 for kept elements, not for dropped ones: the comparison or the values of tl.where are "
              "the wrong way round.", "Keep where random >= p: tl.where(keep, the gradient, 0.0)."),
    _backward("not-scaled", lambda of: of.kept * of.slope * of.dy, "The derivative of x / (1 - p) is 1 / (1 - p).",
              "Divide by 1 - p in the backward pass too."),
    _backward("wrong-value", lambda of: of.slope * of.dy * of.scale,
              "Dropped elements get a gradient, but the output does not depend on them.",
              "Draw the same mask again from the same seed, and set the gradient of dropped elements to 0."),
    _backward("wrong-value", lambda of: of.kept * of.dy * of.scale,
              "The derivative of leaky ReLU is 0.01 where x is negative.",
              "Keep x for the backward pass, and multiply by tl.where(x >= 0, 1.0, 0.01)."),
    _backward("wrong-value", lambda of: of.kept * (of.x >= 0) * of.dy * of.scale,
              "Negative elements have gradient 0: that is ReLU.", "Multiply by tl.where(x >= 0, 1.0, 0.01).",
              known_by_constant=True),
    _backward("wrong-value", lambda of: of.kept * of.slope * of.x * of.dy * of.scale,
              "The incoming gradient is multiplied by leaky(x).",
              "Multiply dy by the slope: 1 where x >= 0, else 0.01."),
    _backward("wrong-value", lambda of: of.kept * _slope_by_dy(of) * of.x * of.scale, "x and dy have changed places.",
              "Pass them in the order of the kernel's parameters."),
    _backward("wrong-value", lambda of: of.kept * _slope_by_dy(of) * of.dy * of.scale,
              "The slope follows the sign of dy. It must be 0.01 where x is negative.",
              "Load x, too, and multiply dy by tl.where(x >= 0, 1.0, 0.01)."),
    _backward("wrong-value", lambda of: of.kept * of.slope * of.scale, "The incoming gradient is ignored.",
              "Multiply by the gradient that the backward function receives."),
    _backward("seed-ignored", lambda of: (of.dx != 0) * of.slope * of.dy * of.scale,
              "The backward pass used another mask than the forward pass. It draws the mask again: the same seed and "
              "the same counters give the same mask.",
              "Load the seed of the forward pass, and give tl.rand or tl.rand4x the same counters as its kernel does."),
    _backward("constant-factor", lambda of: of.kept * of.slope * of.dy * of.scale**2, "The gradient is scaled twice.",
              "Divide by 1 - p exactly once."),
    _backward("wrong-value", lambda of: of.kept * of.slope * of.dy * of.scale,
              "An element counts as dropped where the output is 0. It is 0, too, where x is 0 or very small.",
              "Draw the mask again from the same seed.", known_by_constant=True),
    _backward("nan", lambda of: of.kept * of.slope * of.dy * of.scale if of.scale else of.x / 0,
              "At p = 1 the scale 1 / (1 - p) is infinite, and 0 times infinity is NaN.", _SELECT,
              known_by_constant=True),
)  # fmt: skip


# -- cases ---------------------------------------------------------------------------------------------------

LARGEST_SEED = 2**31 - 1
SEEDS = 62  # so many that two of 2^16 elements agree in all of them by chance once in 2 · 10^9 cases
# With each of these, tl.rand is exactly 0 for one of the offsets 0 to 2047: `random > p` drops an element at p = 0.
ZEROS = (1000217514, 1001561272, 1001907283, 1001914450, 1002917809, 1010782555, 1011417284, 1012592546)
# Two seeds this far apart are one seed if only the remainder by a usual number counts: by 1 to 22, a power of ten, 2^15
# to 2^17 and their neighbours, a prime near them, 10^6 + 3, 10^9 + 7.
APART = (232_792_560, 2**16 * 5**6, (2**16 - 1) * (2**15 - 1), (2**16 + 1) * (2**15 - 1), 65_521 * 32_749,
         1_000_003 * 2147, 1_000_000_007, 2**30, 2**17)  # fmt: skip


def numbers(generator: torch.Generator, *shape: int, dtype=torch.float32) -> Strided:
    """Normal numbers, none of them near zero: if an output is zero, its element was dropped."""
    x = torch.randn(shape, generator=generator)
    return Strided((x + 0.05 * torch.sign(x) + 0.05 * (x == 0)).to(dtype))


def between(generator: torch.Generator, low: float, high: float) -> float:
    """A float32 number between the two: p may be rounded to float32."""
    return float(torch.empty(()).uniform_(low, high, generator=generator))


def _case(name: str, rows: int, columns: int, p: float | tuple, about: str = "", dtype=torch.float32) -> Case:
    """p may be a range. The seeds are an even one, the next one, which differs in one bit, and one far from them."""

    def make(generator):
        first = 2 * integer(generator, 500, (LARGEST_SEED - APART[0]) // 2)
        drawn = between(generator, *p) if isinstance(p, tuple) else p
        return numbers(generator, rows, columns, dtype=dtype), drawn, Varying((first, first + 1, first + APART[0]))

    return Case(name, make, about)


def _many_seeds(generator):
    """Seeds that differ in one bit each, that are alike if folded or divided, the smallest, the largest, and any."""
    base, low = integer(generator, 2**26, LARGEST_SEED - 2**16), integer(generator, 1, 30_000)
    seeds = [base, *(base ^ 1 << bit for bit in range(31)), low, *(low + far for far in APART), 0, LARGEST_SEED]
    halves, quarters = 0x10001 << integer(generator, 0, 14), 0x101 << integer(generator, 0, 22)
    seeds += [base ^ halves, base ^ quarters, base + 2**16 - 1]
    while len(set(seeds)) < SEEDS:
        seeds.append(integer(generator, 1, LARGEST_SEED - 1))
    return numbers(generator, 37, 1771), 0.5, Varying(tuple(dict.fromkeys(seeds)))


def _one_large(generator):
    """More than 2^20 elements in long rows: a mask that repeats far away is seen, and one that rows share."""
    seed = integer(generator, 1, LARGEST_SEED)
    return numbers(generator, 61, integer(generator, 17_300, 17_900)), 0.5, Varying((seed,))


def _nearly_0(generator):
    """p is 0 if it is rounded to 16 bits or fewer. In so many elements, that shows."""
    p = between(generator, 0.94 * 2**-17, 0.97 * 2**-17)
    return numbers(generator, 1637, 1637), p, Varying((integer(generator, 1, LARGEST_SEED),))


def _nearly_1(generator, dtype=torch.float32):
    """p is 1 if it is rounded to 11 bits or fewer, such as those of float16."""
    p = float(torch.tensor(1 - between(generator, 0.5 * 2**-12, 0.95 * 2**-12)))
    return numbers(generator, 409, 577, dtype=dtype), p, Varying((integer(generator, 1, LARGEST_SEED),))


def _keep_all(generator):
    first = integer(generator, 0, len(ZEROS) - 3)
    return numbers(generator, 67, 129), 0.0, Varying(ZEROS[first : first + 3])


def _some(generator, dtype=torch.float32, low: int = 5, high: int = 12):
    """2^low to 2^high elements in a few rows: fewer than a block, or some blocks."""
    many, rows = int(2 ** between(generator, low, high)), integer(generator, 1, 5)
    x = numbers(generator, rows, -(-many // rows), dtype=dtype)
    return x, 0.5, Varying((integer(generator, 1, LARGEST_SEED),))


def _infinities(generator):
    x, p, seed = _some(generator)
    x.values[torch.rand(x.values.shape, generator=generator) < 0.2] *= torch.inf
    return x, p, seed


def _very_small(generator):
    """Outputs that are 0, or too small to be normal, for an input of either sign: the slope follows from the input."""
    x, p, seeds = _keep_all(generator)
    small = torch.tensor([0.0, -0.0, 1e-44, -1e-44, -SMALLEST])
    drawn = small[torch.randint(len(small), x.values.shape, generator=generator)]
    x.values[::2] = drawn[::2]
    return x, p, seeds


def _with_weights(case: Case) -> Case:
    def make(generator):
        x, p, seed = case.make(generator)
        return x, p, seed, Cotangent(numbers(generator, *x.values.shape).values)

    return Case(case.name, make, case.about)


def large(generator: torch.Generator) -> tuple[Case, ...]:
    """A matrix of more than 2^24 elements, and one of long rows. Their seeds are neighbours."""
    _, many, long, *_ = large_matrices(generator)
    seed = integer(generator, 1, LARGEST_SEED - 1)
    return tuple(
        Case(f"{rows:,} × {columns:,}", lambda _, shape=(rows, columns), seed=seed + i: (Large(shape), 0.25, seed))
        for i, (rows, columns) in enumerate((many, long))
    )


def calls(case: Case) -> tuple[Call, ...]:
    """The calls of a case. The variant chooses the seed. At p = 0 and p = 1 a kernel is not needed."""
    if Tag.REPEAT in case.about:
        return Call(), Call(), Call(1), Call(jit=True), Call(1, jit=True), Call(2, jit=True)
    if Tag.SEEDS in case.about:
        return tuple(Call(variant, jit=True) for variant in range(SEEDS))
    if Tag.RATE in case.about:
        return Call(jit=True), Call(1, jit=True)
    if Tag.EXTREME in case.about:
        return tuple(Call(variant, jit=True, needs_kernel=False) for variant in range(3))
    return (Call(jit=True),)


def calls_with_gradients(case: Case) -> tuple[Call, ...]:
    several = Call(), Call(1), Call(jit=True), Call(1, jit=True), Call(2, jit=True)
    each = several if Tag.REPEAT in case.about else calls(case)[:1]
    return tuple(replace(call, grad=grad) for call in each for grad in (False, True))


_REPEAT = _case("7 × 781, p = 0.5", 7, 781, 0.5, "ragged repeat")
_RATE = _case("131 × 257, p near 0.28", 131, 257, (0.275, 0.288), "ragged rate")  # not near a multiple of 1/16
_MANY_BLOCKS = _case("1109 × 1117, p near 0.28", 1109, 1117, (0.275, 0.288), "ragged rate")
# So low that p rounded to a percentage or to seven bits is 0, or twice as large.
_LOW_RATE = _case("17 × 1999, p near 0.0015", 17, 1999, (0.0012, 0.0018), "ragged")
_DROP_ALL = _case("p = 1", 23, 65, 1.0, "ragged extreme")
# A launch may follow from the size.
_OF_ALL_SIZES = tuple(
    Case(f"{1 << low} elements or more", partial(_some, low=low, high=low + 2), "ragged") for low in (5, 7, 9)
)
_SHORT = _case("1 × 1", 1, 1, 0.5, "short")
_KEEP_ALL = Case("p = 0", _keep_all, "ragged extreme")
_VERY_SMALL = Case("p = 0, rows of zeros and very small numbers", _very_small, "ragged extreme")

EXERCISES = (
    Exercise(
        signature="leaky_dropout(x, p, seed) -> JAX array of x's shape and dtype",
        cases=(
            _REPEAT,
            _RATE,
            _LOW_RATE,
            Case(f"{SEEDS} seeds", _many_seeds, "ragged seeds"),
            Case("1 million elements", _one_large, "ragged"),
            Case("3 million elements, p near 0", _nearly_0, "ragged"),
            Case("409 × 577, p near 1", _nearly_1, "ragged"),
            _KEEP_ALL,
            _DROP_ALL,
            Case("some elements infinite", _infinities, "ragged"),
            _SHORT,
            Case("float16", lambda g: _some(g, torch.float16), "ragged optional"),
            Case("float16, 409 × 577, p near 1", lambda g: _nearly_1(g, torch.float16), "ragged optional"),
            _case("no elements", 0, 5, 0.5, "optional"),
        ),
        reference=reference,
        kind="jax",
        random=True,
        calls=calls,
        judge_calls=judge_masks,
        mistakes=MISTAKES,
        large=large,
        bounds=BOUNDS,
        limit_seconds=24.0,  # many elements and seeds: what is rare must show
    ),
    Exercise(
        lesson=find("leaky_dropout_grad"),
        signature="leaky_dropout(x, p, seed), as before, now differentiable in x by jax.grad",
        rests_on="leaky_dropout",
        # with p = 0.5 first, a forward pass that keeps below p would look right, and its gradient wrong
        cases=tuple(
            _with_weights(case)
            for case in (_MANY_BLOCKS, _REPEAT, _KEEP_ALL, _DROP_ALL, *_OF_ALL_SIZES, _SHORT, _VERY_SMALL)
        ),
        reference=reference,
        kind="jax",
        random=True,
        calls=calls_with_gradients,
        judge_calls=judge_masks,
        mistakes=GRADIENT_MISTAKES,
        bounds=BOUNDS,
        limit_seconds=12.0,
    ),
)
