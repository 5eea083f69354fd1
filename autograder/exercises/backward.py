"""08_backward: gradients by kernels, and the loss of a language model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from .design import (
    LONGER,
    NORMAL,
    OF_OTHER_ROWS,
    RAGGED,
    WHOLE,
    Dimension,
    Inputs,
    Level,
    TensorArgument,
    Values,
    between,
    fixed,
    odd,
    of_blocks,
    tried_once,
)
from .spec import Bound, Exercise, Mistake, Sums, bounds
from .tiles import MATRIX, NEAR_1, SUMS, matrices

IGNORED = -100
PROBABILITIES = replace(MATRIX, span=lambda sizes: (0, 2 / sizes["columns"]))
# exp(x - lse) in float32, where lse is rounded; then the rounding of the output.
GRADIENTS = bounds(Bound(2e-5, 1e-8), Bound(1e-3, 1.2e-7), Bound(8e-3, 1e-8))
SOFTMAX = bounds(Bound(2e-5, 2e-7), Bound(1e-3, 5e-7), Bound(8e-3, 5e-7))


FAR = tried_once("gradients near 100", lambda *how: 100.0 + NORMAL.fill(*how))  # the sum takes most away
RISING = tried_once("probabilities that rise to both ends", NORMAL.fill)  # which make the sum


def _probabilities(sizes, kind, dtype, generator):
    shape = sizes["rows"], sizes["columns"]
    rising = torch.linspace(-20, 20, shape[1]).abs() if kind is RISING else 0.0
    return torch.softmax(torch.randn(shape, generator=generator) + rising, 1), kind.fill(shape, dtype, generator)


def softmax_backward(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    y, dy = y.double(), dy.double()
    return y * (dy - (y * dy).sum(1, keepdim=True))


def _softmax_backward_sums(y: torch.Tensor, dy: torch.Tensor) -> Sums:
    """dy and the sum of y * dy are rounded before one is subtracted from the other."""
    y, dy = y.double(), dy.double().abs()
    return Sums(1, y * (dy + (y * dy).sum(1, keepdim=True)))


def _sums_so_far(y: torch.Tensor, dy: torch.Tensor, block: int) -> torch.Tensor:
    """For each element: the sum of y * dy over its row, up to the end of its block."""
    ends = (torch.arange(y.shape[1]) // block + 1) * block - 1
    return (y.double() * dy.double()).cumsum(1)[:, ends.clamp(max=y.shape[1] - 1)]


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean loss over the rows whose target is not -100, float64. torch gives NaN if no row counts."""
    return torch.nn.functional.cross_entropy(logits.double(), targets, ignore_index=IGNORED)


def _ignored(logits, targets):
    targets[::3] = IGNORED
    return logits, targets


def _none_counts(logits, targets):
    return logits, torch.full_like(targets, IGNORED)


def _ascending(logits, targets):
    return logits + torch.linspace(-60, 60, logits.shape[1]), targets


def _far_from_0(logits, targets):
    """exp of the logits overflows, or is 0, if the maximum is not subtracted."""
    return logits + torch.tensor([120.0, -150.0])[torch.arange(len(logits)) % 2][:, None], targets


def _classified(sizes, kind, dtype, generator):
    m, n = sizes["rows"], sizes["vocabulary"]
    logits, targets = torch.randn(m, n, generator=generator), torch.randint(0, n, (m,), generator=generator)
    targets[1:2], targets[-1:] = 0, n - 1
    return kind.fill(logits, targets)


IN_BFLOAT16 = {"dtype": ("bfloat16",), "gradient": ("none",), "values": ("",)}  # a loss over all rows is float32
LOGITS = Inputs(
    (
        TensorArgument(("rows", "vocabulary"), row_stride=True),
        TensorArgument(("rows",), dtype=torch.int64, span=lambda sizes: (0, sizes["vocabulary"])),
    ),
    (
        Dimension(
            "rows",
            (
                Level("few", between(3, 12)),
                Level("many", between(20, 70)),
                Level("none", fixed(0), once=True),
                # their number is not one of the dtype
                Level("hundreds", odd(257, 500), once=True, only_with={"vocabulary": ("short",), **IN_BFLOAT16}),
            ),
            LONGER,
        ),
        Dimension(
            "vocabulary",
            (
                *of_blocks(300, 5000, 1024, 4096, power=5),
                Level("one", fixed(1), once=True),
                Level("short", between(20, 40), once=True, only_with={"rows": ("hundreds",)}),
                Level("long", odd(8200, 9500), once=True, only_with={"rows": ("few",)}),
            ),
        ),
    ),
    tuple(GRADIENTS),
    (
        Values("", fill=lambda logits, targets: (logits, targets)),
        Values("some rows ignored", fill=_ignored),
        tried_once("no row counts", _none_counts, gradient=("none",)),
        tried_once("far from 0", _far_from_0, "huge", vocabulary=(RAGGED, WHOLE), **OF_OTHER_ROWS),
        tried_once("ascending", _ascending, "ascending", vocabulary=("long",)),
    ),
    first=(
        {"rows": 12, "vocabulary": 300},
        {"rows": 12, "vocabulary": 300, "gradient": 0},
        {"rows": 7, "vocabulary": 4100, "row_stride": 4128, "values": "some rows ignored"},
        {"rows": 5, "vocabulary": 70_001, "gradient": 0},
    ),
    together=_classified,
    gradients={0: "logits"},
)


def _with_gradient(change) -> Callable[..., torch.Tensor]:
    """The loss, and the gradient change(softmax, 1 at the target, 1 in the rows that count, scale)."""

    def computed(logits, targets, incoming=None):
        if incoming is None:
            return cross_entropy(logits, targets)
        p, counted = logits.double().softmax(1), (targets != IGNORED).double()
        hot = torch.nn.functional.one_hot(targets.clamp(min=0), p.shape[1]).double()
        return change(p, hot, counted[:, None], incoming.double() / counted.sum())

    return computed


def _loss(change) -> Callable[..., torch.Tensor]:
    """Another loss, and its gradient. change: of the losses of the rows."""

    def computed(logits, targets, incoming=None):
        x = logits.double().requires_grad_(incoming is not None)
        loss = change(torch.nn.functional.cross_entropy(x, targets, ignore_index=IGNORED, reduction="none"))
        return loss if incoming is None else torch.autograd.grad(loss, x, incoming.double())[0]

    return computed


LOSS_MISTAKES = (
    Mistake("wrong-value", _with_gradient(lambda p, hot, counted, scale: p * counted * scale),
            "The gradient is the softmax: the target is missing.", "Subtract 1 where the column is the target."),
    Mistake("not-scaled", _with_gradient(lambda p, hot, counted, scale: (p - hot) * counted * scale * counted.sum()),
            "The gradient is that of the sum, not of the mean.", "Divide by the number of rows that count."),
    Mistake("not-scaled",
            _with_gradient(lambda p, hot, counted, scale: (p - hot) * counted * scale * counted.sum() / len(p)),
            "The gradient was divided by the number of all rows.", "Divide by the number of rows that count."),
    Mistake("wrong-value", _loss(torch.sum), "The loss is the sum.",
            "Divide by the number of rows whose target is not -100."),
    Mistake("wrong-value", _loss(torch.mean), "The loss was divided by the number of all rows.",
            "Divide by the number of rows whose target is not -100."),
)  # fmt: skip


def _activations(sizes, kind, dtype, generator):
    shape = sizes["rows"], sizes["columns"]
    x, dy = (kind.fill(shape, dtype, generator) for _ in range(2))
    return x, dy, 0.5 + torch.rand(shape[0], generator=generator)


EXERCISES = (
    Exercise(
        signature="softmax_backward(y, dy) -> dx, contiguous, for two matrices with any row strides",
        inputs=matrices(PROBABILITIES, MATRIX, together=_probabilities, values=(NORMAL, RISING, FAR),
                        long=(RISING.name,),
                        more=({"rows": 2, "columns": 20_001, "row_stride": 20_011, "values": RISING.name},
                              {"rows": 2, "columns": 20_001, "dtype": torch.bfloat16, "values": FAR.name})),
        reference=softmax_backward,
        bounds=SOFTMAX,
        sums=_softmax_backward_sums,
        contiguous=True,
        mistakes=(
            Mistake("wrong-value", lambda y, dy: y.double() * dy.double(),
                    "The output is y * dy: the sum over the row is missing.",
                    "Subtract the sum of y * dy from dy before you multiply by y."),
            Mistake("wrong-value", lambda y, dy: y.double() * (dy.double() - dy.double().sum(1, keepdim=True)),
                    "The sum adds dy, and not y * dy.", "Add y * dy over the row."),
            Mistake("wrong-value",
                    lambda y, dy: y.double() * (dy.double() - (y.double() * dy.double()).mean(1, keepdim=True)),
                    "The mean of y * dy was subtracted, not the sum.",
                    "Do not divide: the weights y add up to 1 already."),
            Mistake("wrong-value", lambda y, dy: dy.double() - y.double() * dy.double().sum(1, keepdim=True),
                    "That is the gradient of the logarithm of softmax.",
                    "Add up y * dy over the row, subtract this sum from dy, and multiply by y."),
            Mistake("wrong-value", lambda y, dy, block: y.double() * (dy.double() - _sums_so_far(y, dy, block)),
                    "Each block subtracts the sum of the blocks up to it, and not that of the row.",
                    "Add up y * dy in one loop over the row. Compute and store dx in a second loop."),
        ),
    ),
    Exercise(
        signature="cross_entropy(logits, targets) -> the mean loss in float32, differentiable; a target of -100 does "
        "not count",
        inputs=LOGITS,
        reference=cross_entropy,
        bounds=GRADIENTS,
        output_dtype=torch.float32,
        computes=True,
        mistakes=LOSS_MISTAKES,
    ),
    Exercise(
        signature="rms_norm_weight_grad(x, dy, rstd) -> the sum over rows of dy * x * rstd in float32, the same bits "
        "on each call, for two matrices with any row strides",
        inputs=matrices(
            *(replace(MATRIX, **NEAR_1) for _ in range(2)),
            TensorArgument(("rows",), dtype=torch.float32, **NEAR_1),
            together=_activations,
            values=(NORMAL, tried_once("small numbers", lambda *how: 1e-3 * NORMAL.fill(*how))),
            large="columns",
            more=({"rows": 6_003, "columns": 3},),  # more parts than one tile of a merge holds
        ),
        reference=lambda x, dy, rstd: (dy.double() * x.double() * rstd.double()[:, None]).sum(0),
        bounds={dtype: Bound(1e-5, 1e-40) for dtype in SUMS},
        sums=lambda x, dy, rstd: Sums(max(len(x), 1), (x.double() * dy * rstd[:, None]).abs().sum(0), 2.0**-22),
        output_dtype=torch.float32,
        same_bits=True,
    ),
)  # fmt: skip
