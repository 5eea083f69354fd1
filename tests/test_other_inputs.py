"""What a wrong output would be right for: the reference says it, for any exercise. Nothing runs."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from autograder.box.wire import Evidence, Result
from autograder.diagnosis import Observation, diagnose
from autograder.diagnosis.observation import Comparison
from autograder.exercises import EXERCISES
from autograder.exercises.spec import Cotangent, Strided, as_if_by_rows, rows_one_apart
from autograder.tensors import poison
from workshop.executor.arithmetic import tf32

BLOCK = 64


def told(exercise: str, about: dict, compute) -> tuple[str, str]:
    """The name and the meaning of an output. compute: of the arguments, in the place of the reference."""
    exercise = EXERCISES[exercise]
    case = exercise.inputs.case(**about)
    arguments = case.make(torch.Generator().manual_seed(1))
    values = [a.values if isinstance(a, Strided) else a for a in arguments]
    got = compute(*(v.clone() if isinstance(v, torch.Tensor) else v for v in values)).float()
    bound = exercise.bounds[torch.float32].of_sums(exercise.sums(*values) if exercise.sums else None)
    comparison = Comparison(got, exercise.expected(case, values).double(), bound, exercise.inputs.any_rank)
    result = Result(tuple(got.shape), "float32", True, False)
    found = diagnose(Observation(exercise, case, arguments, "interpreter", result=result, comparison=comparison,
                                 evidence=Evidence(launched=("kernel",)), constants=(BLOCK,)))  # fmt: skip
    return found.slug, found.means


VECTOR, MATRIX, PRODUCT = {"n": 1000}, {"rows": 37, "columns": 300}, {"m": 40, "n": 24, "k": 100}
CLAMPED = VECTOR | {"low": -0.5, "high": 0.75}
HEADS = {"heads": 2, "tokens": 300, "d": 64}
IGNORED = {"rows": 37, "vocabulary": 300, "values": "some rows ignored"}
AGAIN = {n: torch.arange(n) % BLOCK for n in (100, 1000)}
WRONG = {
    "not used": ("vector_add", VECTOR, lambda x, y: x, "wrong-value", "if y were always 0"),
    "a factor": ("scale_vector", VECTOR | {"a": 2.5}, lambda x, a: x, "not-scaled", "if a were always 1"),
    "a limit": ("lost_lane", CLAMPED, lambda x, low, high: x.clamp(min=low), "wrong-value", "hardly any effect"),
    "twice": ("vector_add", VECTOR, lambda x, y: x + x, "wrong-value", "with x in the place of y"),
    "exchanged": ("lost_lane", CLAMPED, lambda x, low, high: x.clamp(high, low), "wrong-value", "changed places"),
    "a minus": ("vector_add", VECTOR, lambda x, y: x - y, "wrong-value", "other sign of y"),
    "a first value": ("found_race", MATRIX, lambda x: x.clamp(min=3.0).amax(1), "wrong-value", "smaller than 3"),
    "a clamp": ("cross_entropy", IGNORED, lambda x, t: cross_entropy(x, t.clamp(0)), "wrong-value", "of targets"),
    "overlap": ("row_sum", MATRIX, lambda x: rows_one_apart(x).sum(1), "stride-ignored", "from element r on"),
    "transposed": ("matmul", PRODUCT, lambda a, b: a @ as_if_by_rows(b), "stride-ignored", "b was read as if"),
    "by row": ("row_bias", MATRIX, lambda x, b: x + b[: len(x), None], "wrong-value", "b[row] was read"),
    "rounded": ("vector_add", VECTOR, lambda x, y: x.bfloat16() + y.bfloat16(), "low-precision", "to bfloat16"),
    "TF32": ("matmul", PRODUCT, lambda a, b: tf32(a) @ tf32(b), "low-precision", "to TF32"),
    "a mean": ("row_sum", MATRIX, lambda x: x.mean(1), "not-scaled", "divided by columns, which is 300"),
    "a root": ("decode_scores", HEADS, lambda q, k: (q[:, None] * k).sum(2), "not-scaled", "times √d, which is 8"),
    "a part": ("row_sum", MATRIX, lambda x: x[:, :BLOCK].sum(1), "wrong-value", "columns 0 to 63 alone, of 300"),
    "again": ("tile_dot", PRODUCT, lambda a, b: a[:, AGAIN[100]] @ b, "wrong-value", "of a again"),
    "in all": ("vector_add", VECTOR, lambda x, y: (x + y)[AGAIN[1000]], "wrong-program-id", "0 to 63 of x and y again"),
}


def _tail_left_out(*vectors: torch.Tensor) -> torch.Tensor:
    """The sum, of which the elements behind the last whole block were never written."""
    output = poison(torch.empty(vectors[0].shape))
    whole = output.numel() // BLOCK * BLOCK
    output.view(-1)[:whole] = sum(vectors).reshape(-1)[:whole]
    return output


@pytest.mark.parametrize("leading", [(), (3,), (3, 5)])
def test_an_output_of_any_rank_has_no_rows_that_changed_places(leading):
    slug, _ = told("vector_add", VECTOR | {"leading": leading}, _tail_left_out)
    assert slug == "tail-wrong"


@pytest.mark.parametrize("number", [-65504.0, -1e30, 300.0, 2.5])
@pytest.mark.parametrize("name", [each.name for each in EXERCISES.values() if each.kind == "kernel" and each.inputs])
def test_an_output_of_one_number_is_explained_whatever_the_dtypes(name, number):
    """An int8 has no 300, and a float16 no -1e30: such a number limits no input."""
    exercise = EXERCISES[name]
    for case in exercise.cases_of(torch.Generator().manual_seed(1))[::6]:
        arguments = case.make(torch.Generator().manual_seed(1))
        arguments = tuple(Strided(a.values) if isinstance(a, Cotangent) else a for a in arguments)
        values = [a.values if isinstance(a, Strided) else a for a in arguments]
        expected = exercise.expected(case, values).double()
        comparison = Comparison(torch.full(expected.shape, number), expected, next(iter(exercise.bounds.values())))
        assert not expected.numel() or diagnose(
            Observation(exercise, case, arguments, "interpreter", comparison=comparison, constants=(BLOCK,))
        )


@pytest.mark.parametrize("mistake", WRONG)
def test_the_other_inputs_are_named(mistake):
    exercise, about, compute, slug, words = WRONG[mistake]
    name, means = told(exercise, about, compute)
    assert name == slug and words in means, (name, means)
