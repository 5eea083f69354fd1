"""05_jax_dropout: leaky ReLU and dropout in one kernel, called from JAX, and its gradient."""

import torch

from .spec import Bound, Case, Exercise, Strided

SLOPE = 0.01
# Up to rounding: the slope, the scale and the product are each rounded once, in the narrowest dtype used.
BOUNDS = {torch.float32: Bound(2e-6, 1e-9), torch.float16: Bound(4e-3, 1e-6)}


def numbers(generator: torch.Generator, *shape: int, dtype=torch.float32) -> Strided:
    """Normal numbers that stay away from zero: where an output is zero, its element was dropped."""
    x = torch.randn(shape, generator=generator)
    return Strided((x + 0.05 * torch.sign(x) + 0.05 * (x == 0)).to(dtype))


def kept(x: torch.Tensor, p: float, *_) -> torch.Tensor:
    """What an element is if it is kept, in float64."""
    x = x.double()
    return torch.where(x >= 0, x, SLOPE * x) / (1 - p) if p < 1 else torch.zeros_like(x)


def gradient(x: torch.Tensor, p: float, w: torch.Tensor) -> torch.Tensor:
    """The gradient of sum(w * leaky_dropout(x)) with respect to an element that is kept, in float64."""
    slope = torch.where(x >= 0, 1.0, SLOPE).double()
    return slope * w.double() / (1 - p) if p < 1 else torch.zeros_like(slope)


def _case(name: str, rows: int, columns: int, p: float, about: str = "", dtype=torch.float32) -> Case:
    def make(generator):
        return numbers(generator, rows, columns, dtype=dtype), p

    return Case(name, make, frozenset(about.split()))


def _with_weights(case: Case) -> Case:
    def make(generator):
        x, p = case.make(generator)
        return x, p, numbers(generator, *x.values.shape)

    return Case(case.name, make, case.about)


# "repeat": called several times, plainly and under jit. "rate": large enough for its statistics to tell.
# "optional": the contract does not ask for it; refusing is right, a wrong result is not.
_REPEAT = _case("7 × 781, p = 0.5", 7, 781, 0.5, "ragged repeat")
_RATE = _case("131 × 257, p = 0.3", 131, 257, 0.3, "ragged rate")
_KEEP_ALL = _case("p = 0", 23, 65, 0.0, "ragged")
_DROP_ALL = _case("p = 1", 23, 65, 1.0, "ragged")
_SHORT = _case("1 × 1", 1, 1, 0.5, "short")
_HALF = _case("float16", 5, 130, 0.5, "ragged optional", torch.float16)
_EMPTY = _case("no elements", 0, 5, 0.5, "optional")

EXERCISES = (
    Exercise(
        name="leaky_dropout",
        notebook="05_jax_dropout",
        points=4,
        entry="leaky_dropout",
        signature="leaky_dropout(x, p, seed) -> JAX array of x's shape and dtype",
        cases=(_REPEAT, _RATE, _KEEP_ALL, _DROP_ALL, _SHORT, _HALF, _EMPTY),
        reference=kept,
        kind="jax",
        bounds=BOUNDS,
        limit_seconds=15.0,  # XLA compiles about twenty programs
    ),
    Exercise(
        name="leaky_dropout_grad",
        notebook="05_jax_dropout",
        points=3,
        entry="leaky_dropout",
        signature="leaky_dropout(x, p, seed), as before, now differentiable in x by jax.grad",
        cases=tuple(_with_weights(case) for case in (_REPEAT, _RATE, _KEEP_ALL, _DROP_ALL, _SHORT)),
        reference=gradient,
        kind="jax",
        bounds=BOUNDS,
        stretch=True,
        limit_seconds=15.0,  # XLA compiles about twenty programs
    ),
)
