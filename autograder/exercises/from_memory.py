"""The empty cells that open lessons 2, 3, 4, 8 and 9: a kernel of the lesson before, written without looking."""

from __future__ import annotations

from dataclasses import replace

import torch

from .design import NORMAL, TRANSPOSED, TensorArgument, of_all_sizes
from .softmax import ROW_VALUES, rows_of_a_softmax
from .spec import Bound, Exercise, Mistake
from .tiles import INFINITE_ENDS, LARGE_ONES, MATRIX, SUMS, VERY_LONG, matrices, vectors
from .vector_add import ANYTHING, EXACT, FACTOR, SCALED_EXACTLY


def max_and_sum(x: torch.Tensor, of_max: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """The maximum of each row, and the sum of exp(x − maximum); of_max: the share of it that is subtracted."""
    x, largest = x.double(), x.double().amax(1) if len(x) else x.new_empty(0).double()
    return largest, torch.exp(x - of_max * largest[:, None]).sum(1)


def _without_rescale(x: torch.Tensor, block: int) -> torch.Tensor:
    """The sums of a walk over blocks, each with the maximum so far."""
    parts = x.double().split(block, 1)
    so_far = torch.stack([part.amax(1) for part in parts]).cummax(0).values
    return sum(torch.exp(part - m[:, None]).sum(1) for part, m in zip(parts, so_far))


EXERCISES = (
    Exercise(
        signature="scale_vector(x, a) -> a * x, for a contiguous vector",
        inputs=vectors(FACTOR, first=({"n": 1000, "a": 2.5}, {"n": 5003, "a": 0.75})),
        reference=lambda x, a: x.double() * a,
        bounds=SCALED_EXACTLY,
    ),
    Exercise(
        signature="row_sum(x) -> the sum of each row in float32, for a matrix with any row stride",
        inputs=matrices(
            MATRIX, values=(NORMAL, LARGE_ONES, INFINITE_ENDS), more=(VERY_LONG | {"values": INFINITE_ENDS.name},)
        ),
        reference=lambda x: x.double().sum(1),
        bounds=SUMS,
        output_dtype=torch.float32,
    ),
    Exercise(
        signature="row_max_and_sum(x) -> the maximum of each row and the sum of exp(x - maximum), both in float32, for "
        "a contiguous matrix",
        inputs=replace(
            rows_of_a_softmax(ROW_VALUES, row_stride=False),
            outputs=("the maxima", "the sums"),
            first=tuple({"rows": 3, "columns": n, "pick": pick} for n in (300, 2503) for pick in (0, 1)),
        ),
        reference=max_and_sum,
        bounds={dtype: Bound(3e-5, 1e-6) for dtype in SUMS},
        output_dtype=torch.float32,
        mistakes=(
            Mistake("wrong-value", lambda x: (max_and_sum(x)[0], x.double().sum(1)), "The sums add x, and not exp.",
                    "Add tl.exp(x - m)."),
            Mistake("overflow", lambda x: max_and_sum(x, 0.0), "The sums add exp(x): the maximum is not subtracted.",
                    "Add tl.exp(x - m)."),
            Mistake("missing-rescale", lambda x, block: (max_and_sum(x)[0], _without_rescale(x, block)),
                    "The sum still belongs to older maxima.", "When the maximum grows, multiply the sum by "
                    "exp(old maximum - new maximum)."),
        ),
    ),
    Exercise(
        signature="logsumexp_rows(x) -> the logarithm of the sum of exp of each row in float32, for a contiguous "
        "matrix",
        inputs=rows_of_a_softmax(ROW_VALUES, row_stride=False),
        reference=lambda x: x.double().logsumexp(1),
        bounds={dtype: Bound(1e-6, 1e-5) for dtype in SUMS},
        output_dtype=torch.float32,
    ),
    Exercise(
        signature="add_2d(x, y) -> x + y, contiguous, for two matrices with any strides",
        inputs=matrices(
            *[TensorArgument(MATRIX.shape, row_stride=True, any_strides=True)] * 2,
            values=(NORMAL, of_all_sizes(spare=2), ANYTHING),
            more=({"rows": 40, "columns": 70, "layouts": dict.fromkeys((0, 1), TRANSPOSED)},),  # alike, and not by rows
        ),
        reference=lambda x, y: x.double() + y.double(),
        bounds=EXACT,
        contiguous=True,
    ),
)  # fmt: skip
