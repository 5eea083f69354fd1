"""05_jax_dropout: leaky ReLU and dropout in one kernel, called from JAX, and its gradient."""

from __future__ import annotations

from dataclasses import replace

import torch

from workshop.syllabus import find

from .dropout_rules import judge_calls
from .dropout_values import BOUNDS, gradient, kept
from .spec import Bound, Call, Case, Cotangent, Exercise, Strided, Tag, Varying, integer

LARGEST_SEED = 2**31 - 1
SEEDS = 40
# Two seeds that differ by one of these are alike if only some of a seed's bits or digits count.
DIFFERENCES = (1, 2, 256, 2**16 - 1, 2**24, 2**16 * 5**6, 232_792_560)  # the last can be divided by 1 to 22


def numbers(generator: torch.Generator, *shape: int, dtype=torch.float32) -> Strided:
    """Normal numbers, none of them near zero: if an output is zero, its element was dropped."""
    x = torch.randn(shape, generator=generator)
    return Strided((x + 0.05 * torch.sign(x) + 0.05 * (x == 0)).to(dtype))


def _case(name: str, rows: int, columns: int, p: float | tuple, about: str = "", dtype=torch.float32) -> Case:
    """p may be a range. The seeds are an even one, the next one, which differs in one bit, and one far from them."""

    def make(generator):
        first = 2 * integer(generator, 500, (LARGEST_SEED - DIFFERENCES[-1]) // 2)
        low, high = p if isinstance(p, tuple) else (p, p)
        drawn = low + (high - low) * float(torch.rand((), generator=generator, dtype=torch.float64))
        seeds = Varying((first, first + 1, first + DIFFERENCES[-1]))
        return numbers(generator, rows, columns, dtype=dtype), drawn, seeds

    return Case(name, make, about)


def _many_seeds(generator):
    """The smallest and the largest seed, seeds that are easily taken for each other, and any others.

    So many that two elements whose masks agree for all of them share a random number: by chance, one in 2**40 does.
    """
    base = 2 * integer(generator, 500, (LARGEST_SEED - max(DIFFERENCES)) // 2)
    bit = base ^ 1 << integer(generator, 1, 10)
    seeds = (0, LARGEST_SEED, base, bit, *(base + more for more in DIFFERENCES))
    others = (integer(generator, 1, LARGEST_SEED - 1) for _ in range(SEEDS - len(seeds)))
    return numbers(generator, 1, 2048), 0.5, Varying((*seeds, *others))


def _infinities(generator):
    x, p, seed = _case("", 5, 130, 0.5).make(generator)
    x.values[torch.rand(x.values.shape, generator=generator) < 0.2] *= torch.inf
    return x, p, seed


def _with_weights(case: Case) -> Case:
    def make(generator):
        x, p, seed = case.make(generator)
        return x, p, seed, Cotangent(numbers(generator, *x.values.shape).values)

    return Case(case.name, make, case.about)


def nearest(calls: list) -> list[tuple[torch.Tensor, Bound]]:
    """The right outputs that are nearest to those of a case's calls: any element may be kept, and others dropped.

    The gradient of a call comes directly after it, and follows its mask.
    """
    found, mask = [], None
    for made in calls:
        x, p, _ = made.arguments
        bound, zero = BOUNDS[x.dtype], torch.zeros(x.shape, dtype=torch.float64)
        if made.call.grad:
            found.append((torch.where(mask, gradient(x, p, made.cotangent), zero), twice(bound)))
        else:
            mask = made.got != 0 if p else torch.ones(x.shape, dtype=torch.bool)
            found.append((torch.where(mask, kept(x, p), zero), bound))
    return found


def twice(bound: Bound) -> Bound:
    return Bound(2 * bound.relative, bound.absolute)


def calls(case: Case) -> tuple[Call, ...]:
    """The calls of a case. The variant chooses the seed. At p = 0 and p = 1 a kernel is not needed."""
    if Tag.REPEAT in case.about:
        return Call(), Call(), Call(1), Call(jit=True), Call(1, jit=True), Call(2, jit=True)
    if Tag.SEEDS in case.about:
        return tuple(Call(variant, jit=True) for variant in range(SEEDS))
    if Tag.RATE in case.about:
        return Call(jit=True), Call(1, jit=True)
    return (Call(jit=True, needs_kernel=Tag.EXTREME not in case.about),)


def calls_with_gradients(case: Case) -> tuple[Call, ...]:
    repeated = Tag.REPEAT in case.about
    several = Call(), Call(1), Call(jit=True), Call(1, jit=True), Call(2, jit=True)
    each = several if repeated else calls(case)[:1]
    return tuple(replace(call, grad=grad) for call in each for grad in (False, True))


_REPEAT = _case("7 × 781, p = 0.5", 7, 781, 0.5, "ragged repeat")
# Not near a multiple of 1/16; and so low that p rounded to a percentage or to seven bits is 0, or twice as large.
_RATE = _case("131 × 257, p near 0.28", 131, 257, (0.275, 0.288), "ragged rate")
_LOW_RATE = _case("17 × 1999, p near 0.0015", 17, 1999, (0.0012, 0.0018), "ragged")
_SEEDS = Case(f"1 × 2048, {SEEDS} seeds", _many_seeds, "seeds")
_INFINITE = Case("5 × 130, some elements infinite", _infinities, "ragged")
_KEEP_ALL = _case("p = 0", 23, 65, 0.0, "ragged extreme")
_DROP_ALL = _case("p = 1", 23, 65, 1.0, "ragged extreme")
_SHORT = _case("1 × 1", 1, 1, 0.5, "short")
_HALF = _case("float16", 5, 130, 0.5, "ragged optional", torch.float16)
_EMPTY = _case("no elements", 0, 5, 0.5, "optional")

EXERCISES = (
    Exercise(
        lesson=find("leaky_dropout"),
        entry="leaky_dropout",
        signature="leaky_dropout(x, p, seed) -> JAX array of x's shape and dtype",
        cases=(_REPEAT, _RATE, _LOW_RATE, _SEEDS, _KEEP_ALL, _DROP_ALL, _INFINITE, _SHORT, _HALF, _EMPTY),
        reference=kept,
        kind="jax",
        calls=calls,
        judge_calls=judge_calls,
        nearest=nearest,
        bounds=BOUNDS,
        limit_seconds=18.0,  # JAX traces about twenty programs, and runs one of them for many seeds
    ),
    Exercise(
        lesson=find("leaky_dropout_grad"),
        entry="leaky_dropout",
        signature="leaky_dropout(x, p, seed), as before, now differentiable in x by jax.grad",
        rests_on="leaky_dropout",
        # with p = 0.5 first, a forward pass that keeps below p would look right, and its gradient wrong
        cases=tuple(_with_weights(case) for case in (_RATE, _REPEAT, _KEEP_ALL, _DROP_ALL, _SHORT)),
        reference=kept,
        kind="jax",
        calls=calls_with_gradients,
        judge_calls=judge_calls,
        nearest=nearest,
        bounds=BOUNDS,
        limit_seconds=12.0,
    ),
)
