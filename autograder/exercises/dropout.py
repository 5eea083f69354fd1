"""05_jax_dropout: leaky ReLU and dropout in one kernel, called from JAX, and its gradient."""

from __future__ import annotations

from dataclasses import replace

import torch

from workshop.syllabus import find

from .dropout_rules import BOUNDS, judge_calls, kept
from .spec import Call, Case, Cotangent, Exercise, Strided, Tag, Varying

SEEDS = 1 << 30


def numbers(generator: torch.Generator, *shape: int, dtype=torch.float32) -> Strided:
    """Normal numbers, none of them near zero: if an output is zero, its element was dropped."""
    x = torch.randn(shape, generator=generator)
    return Strided((x + 0.05 * torch.sign(x) + 0.05 * (x == 0)).to(dtype))


def _case(name: str, rows: int, columns: int, p: float, about: str = "", dtype=torch.float32) -> Case:
    def make(generator):
        first, other = (int(torch.randint(1000, SEEDS, (), generator=generator)) for _ in range(2))
        return numbers(generator, rows, columns, dtype=dtype), p, Varying((first, first + 1, other))

    return Case(name, make, about)


def _with_weights(case: Case) -> Case:
    def make(generator):
        x, p, seed = case.make(generator)
        return x, p, seed, Cotangent(numbers(generator, *x.values.shape).values)

    return Case(case.name, make, case.about)


def calls(case: Case) -> tuple[Call, ...]:
    """The calls of a case. The variant chooses the seed. At p = 0 and p = 1 a kernel is not needed."""
    if Tag.REPEAT in case.about:
        return Call(), Call(), Call(jit=True), Call(1, jit=True), Call(2, jit=True)
    if Tag.RATE in case.about:
        return Call(jit=True), Call(1, jit=True)
    return (Call(jit=True, needs_kernel=Tag.EXTREME not in case.about),)


def calls_with_gradients(case: Case) -> tuple[Call, ...]:
    repeated = Tag.REPEAT in case.about
    each = (Call(), Call(jit=True), Call(1, jit=True)) if repeated else calls(case)[:1]
    return tuple(replace(call, grad=grad) for call in each for grad in (False, True))


_REPEAT = _case("7 × 781, p = 0.5", 7, 781, 0.5, "ragged repeat")
_RATE = _case("131 × 257, p = 0.3", 131, 257, 0.3, "ragged rate")
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
        cases=(_REPEAT, _RATE, _KEEP_ALL, _DROP_ALL, _SHORT, _HALF, _EMPTY),
        reference=kept,
        kind="jax",
        calls=calls,
        judge_calls=judge_calls,
        bounds=BOUNDS,
        limit_seconds=15.0,  # XLA compiles about twenty programs
    ),
    Exercise(
        lesson=find("leaky_dropout_grad"),
        entry="leaky_dropout",
        signature="leaky_dropout(x, p, seed), as before, now differentiable in x by jax.grad",
        cases=tuple(_with_weights(case) for case in (_REPEAT, _RATE, _KEEP_ALL, _DROP_ALL, _SHORT)),
        reference=kept,
        kind="jax",
        calls=calls_with_gradients,
        judge_calls=judge_calls,
        bounds=BOUNDS,
        limit_seconds=15.0,  # XLA compiles about twenty programs
    ),
)
