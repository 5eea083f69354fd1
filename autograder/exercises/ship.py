"""10_ship_it: an RMS norm with both gradients from an empty cell, and the same as an operator of torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from workshop.syllabus import find

from .design import FIRST, LAST, RAGGED, WHOLE, Inputs, Level, Number, Values, fixed, normal_but, tried_once
from .spec import Bound, Exercise, Mistake, Sums, bounds
from .tiles import COLUMNS, MATRIX, NEAR_1, ROW, ROWS

X, WEIGHT = 0, 1
# Two roundings to the dtype: of the normalized number, and of its product with the weight. See `sums`, too.
BOUNDS = bounds(Bound(2e-6, 1e-12), Bound(1.2e-3, 1.2e-7), Bound(1e-2, 1e-12))


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x.double() * _rstd(x, eps) * weight.double()


def _rstd(x: torch.Tensor, eps: float) -> torch.Tensor:
    return (x.double().square().mean(1, keepdim=True) + eps).rsqrt()


def sums(x, weight, eps, incoming=None, gradient=None) -> Sums:
    """Of which terms the output consists, or the gradient in an argument, and how large they are."""
    x, weight, rstd = x.double().abs(), weight.double().abs(), _rstd(x, eps)
    if gradient is None:
        return Sums(x.shape[1], x * rstd * weight)
    dy = incoming.double().abs().expand(x.shape)
    if gradient == WEIGHT:
        return Sums(max(x.shape), (dy * x * rstd).sum(0))
    own = dy * weight
    return Sums(x.shape[1], rstd * (own + x * rstd.square() * (own * x).mean(1, keepdim=True)))


def _drawn(sizes, kind, dtype, generator):
    x = kind.fill((sizes["rows"], sizes["columns"]), dtype, generator)
    signs = torch.randint(-1, 2, (sizes["columns"],), generator=generator)  # some weights are 0
    return x, signs * (0.5 + torch.rand(sizes["columns"], generator=generator))


def _scaled(by: float):
    return lambda shape, dtype, generator: by * torch.randn(shape, generator=generator)


NO_EPS = Level("none", fixed(0.0), once=True, only_with={"values": ("small numbers",), "rows": (RAGGED, WHOLE)})
INPUTS = Inputs(
    (
        MATRIX,
        replace(ROW, **NEAR_1),
        Number("eps", (Level("usual", fixed(1e-5, 1e-6, 1e-8)), Level("large", fixed(0.25)), NO_EPS)),
    ),
    (ROWS, COLUMNS),
    tuple(BOUNDS),
    (
        Values("", fill=_scaled(1)),
        Values("small numbers", fill=_scaled(2e-3)),
        Values("large numbers", fill=_scaled(3e2)),
        tried_once("some rows of zeros", normal_but((slice(None, None, 2), 0))),
        # a sum of a long row that leaves one element out is right within its rounding, unless that element is large
        tried_once("large ends", normal_but((FIRST, 30.0), (LAST, -20.0))),
    ),
    first=(
        {"rows": 37, "columns": 300, "eps": 1e-5},
        {"rows": 64, "columns": 256, "eps": 1e-5, "gradient": X},
        {"rows": 37, "columns": 300, "eps": 1e-5, "gradient": WEIGHT, "row_stride": 0},
        {"rows": 5, "columns": 4100, "eps": 0.25, "gradient": X, "row_stride": 4128, "values": "large ends"},
        {"rows": 2, "columns": 20_001, "eps": 0.25, "gradient": WEIGHT, "values": "large ends"},
        *({"rows": 0, "columns": 300, "eps": 1e-5, "gradient": gradient} for gradient in (None, WEIGHT)),
        {"rows": 3, "columns": 9_001, "eps": 0.25, "values": "large ends"},  # a branch for long rows has its own eps
    ),
    large="rows",
    together=_drawn,
    gradients={X: "x", WEIGHT: "weight"},
    incoming=("rows", "columns"),
)


# -- mistakes ----------------------------------------------------------------------------------------------


def _forward(norm: Callable, explanation: str, advice: str) -> list[Mistake]:
    """Another function in the place of the norm, and its two gradients."""

    def of(number: int | None) -> Callable:
        def computed(x, weight, eps, incoming=None):
            if (incoming is None) != (number is None):
                raise ValueError("another output is judged")
            given = [x.double().requires_grad_(number == X), weight.double().requires_grad_(number == WEIGHT)]
            y = norm(*given, eps)
            return y if number is None else torch.autograd.grad(y, given[number], incoming.double())[0]

        return computed

    return [Mistake("wrong-value", of(number), explanation, advice) for number in (None, X, WEIGHT)]


def _gradient(change: Callable, explanation: str, advice: str, slug: str = "wrong-value") -> Mistake:
    """change(x, weight, dy, rstd): what is computed in the place of a gradient. dy is float64."""

    def computed(x, weight, eps, incoming=None):
        if incoming is None:
            raise ValueError("the output is judged")
        return change(x.double(), weight.double(), incoming.double().expand(x.shape), _rstd(x, eps))

    return Mistake(slug, computed, explanation, advice)


def _mean(values: torch.Tensor) -> torch.Tensor:
    return values.mean(1, keepdim=True)


SLOPE = "dx = rstd * (dy * w - x * rstd² * mean(dy * w * x)), with the mean over the row."
MISTAKES = (
    *_forward(lambda x, w, eps: x / (_mean(x * x).sqrt() + eps) * w,
              "eps was added to the root, and not under it.",
              "Add eps to the mean of the squares, then take the root."),
    *_forward(lambda x, w, eps: (x - _mean(x)) * ((x - _mean(x)).square().mean(1, keepdim=True) + eps).rsqrt() * w,
              "The mean of the row was subtracted: that is LayerNorm.", "An RMS norm takes x as it is."),
    *_forward(lambda x, w, eps: x / (_mean(x * x) + eps) * w,
              "x was divided by the mean of the squares, and not by its root.",
              "Take tl.sqrt of it, or multiply by tl.rsqrt."),
    _gradient(lambda x, w, dy, rstd: rstd * dy * w,
              "rstd was taken for a constant: it follows from all x of the row, too.", SLOPE),
    _gradient(lambda x, w, dy, rstd: rstd * (dy * w - x * rstd.square() * _mean(dy * x)),
              "The sum of the row lacks the weight.", SLOPE),
    _gradient(lambda x, w, dy, rstd: rstd * (dy * w - x * rstd.square() * (dy * w * x).sum(1, keepdim=True)),
              "The sum of the row was not divided by n.", SLOPE, "not-scaled"),
    _gradient(lambda x, w, dy, rstd: rstd * (dy * w - x * rstd * _mean(dy * w * x)),
              "The second term has rstd² where it needs rstd³.", SLOPE),
    _gradient(lambda x, w, dy, rstd: (dy * x).sum(0),
              "The gradient of the weight lacks rstd.", "Add dy * x * rstd over the rows."),
    _gradient(lambda x, w, dy, rstd: (dy * x * rstd * w).sum(0),
              "The gradient of the weight was multiplied by the weight: dy * y was added.",
              "Add dy * x * rstd over the rows."),
)  # fmt: skip


def _norm(name: str, signature: str, **more) -> Exercise:
    return Exercise(
        lesson=find(name),
        entry=name,
        signature=signature,
        inputs=INPUTS,
        reference=rms_norm,
        bounds=BOUNDS,
        sums=sums,
        mistakes=MISTAKES,
        contiguous=True,
        reads_per_element=2,
        limit_seconds=30.0,  # a card compiles three kernels for each configuration, dtype and kind of length
        **more,
    )


EXERCISES = (
    _norm(
        "rms_norm",
        "rms_norm(x, weight, eps) -> x / sqrt(mean of x² in the row + eps) * weight, contiguous, differentiable in x "
        "and weight, for a matrix with any row stride",
    ),
    _norm(
        "rms_norm_op",
        "rms_norm_op(x, weight, eps) -> the same, as an operator that torch.library.opcheck and torch.compile accept",
        operator=True,
        rests_on="rms_norm",
    ),
)
