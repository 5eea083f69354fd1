"""Each bound accepts what is right and rejects each way of being slightly wrong, whatever the draw.

Drawn are the cases that the judge relies on for the error in question: a wrong answer must fall in at least one
case of its dtype in every draw; a right one must pass in all of them.
"""

import pytest
import torch

from autograder.diagnosis.observation import Comparison
from autograder.exercises import EXERCISES
from autograder.exercises.softmax import BOUNDS, PLAIN, reference
from workshop.executor.arithmetic import tf32

DRAWS = 50
BLOCK = 256
CASES = {
    torch.float32: [PLAIN.case(rows=4, columns=300), PLAIN.case(rows=2, columns=1024)],
    torch.float16: [PLAIN.case(torch.float16, rows=4, columns=columns) for columns in (1024, 815)],
    torch.bfloat16: [PLAIN.case(torch.bfloat16, rows=4, columns=columns) for columns in (1024, 815)],
}


def draws(dtype):
    for seed in range(DRAWS):
        for position, case in enumerate(CASES[dtype]):
            (x,) = case.make(torch.Generator().manual_seed(1000 * position + seed))
            yield seed, x.values


def accepted(output, x) -> bool:
    return Comparison(output.to(x.dtype), reference(x), BOUNDS[x.dtype]).right


def exponentials(x):
    x = x.float()
    return torch.exp(x - x.amax(1, keepdim=True))


def in_float32(x):
    return exponentials(x) / exponentials(x).sum(1, keepdim=True)


def online(x):
    """Float32, block by block: other roundings than torch's."""
    m = torch.full((len(x), 1), -torch.inf)
    d = torch.zeros(len(x), 1)
    for part in x.float().split(BLOCK, 1):
        m_new = torch.maximum(m, part.amax(1, keepdim=True))
        d = d * torch.exp(m - m_new) + torch.exp(part - m_new).sum(1, keepdim=True)
        m = m_new
    return torch.exp(x.float() - m) / d


def base_two(x):
    x = x.float() * 1.4426950408889634
    e = torch.exp2(x - x.amax(1, keepdim=True))
    return e * (1.0 / e.sum(1, keepdim=True))


def lanes_in(dtype):
    """One accumulator of `dtype` per lane of a block, as a kernel would keep it."""

    def compute(x):
        lanes = torch.zeros(len(x), BLOCK, dtype=dtype)
        for part in exponentials(x).split(BLOCK, 1):
            lanes[:, : part.shape[1]] += part.to(dtype)
        return exponentials(x) / lanes.sum(1, keepdim=True, dtype=torch.float32)

    return compute


def sum_in(dtype):
    """One accumulator of `dtype` for the row, block after block."""

    def compute(x):
        total = torch.zeros(len(x), 1, dtype=dtype)
        for part in exponentials(x).split(BLOCK, 1):
            total += part.sum(1, keepdim=True).to(dtype)
        return exponentials(x) / total.float()

    return compute


def one_by_one(dtype):
    """The sum in `dtype` after each element."""

    def compute(x):
        total = torch.zeros(len(x), dtype=dtype)
        for column in exponentials(x).to(dtype).unbind(1):
            total = total + column
        return exponentials(x) / total.float()[:, None]

    return compute


RIGHT = {"float32": in_float32, "online": online, "base two": base_two}
WRONG = {
    "zeros": lambda x: torch.zeros(x.shape),
    "ones / N": lambda x: torch.full(x.shape, 1 / x.shape[1]),
    "2% too large": lambda x: 1.02 * in_float32(x),
    "2% too small": lambda x: 0.98 * in_float32(x),
    "a denominator without its first block": lambda x: (
        exponentials(x) / exponentials(x)[:, BLOCK:].sum(1, keepdim=True)
    ),
    "a denominator without its last block": lambda x: (
        exponentials(x) / exponentials(x)[:, : (x.shape[1] - 1) // BLOCK * BLOCK].sum(1, keepdim=True)
    ),
    "the sum in bfloat16": sum_in(torch.bfloat16),
    "the sum in float16, element by element": one_by_one(torch.float16),
    "the sum in bfloat16, element by element": one_by_one(torch.bfloat16),
}
# Where the output is rounded to half, its rounding hides these. Every answer is judged in float32 too.
SUBTLE = {
    "lanes in float16": lanes_in(torch.float16),
    "lanes in bfloat16": lanes_in(torch.bfloat16),
    "the sum in float16": sum_in(torch.float16),
}


@pytest.mark.parametrize("dtype", CASES, ids=str)
@pytest.mark.parametrize("name", RIGHT)
def test_right_answers_are_within_the_bounds(name, dtype):
    refused = [seed for seed, x in draws(dtype) if not accepted(RIGHT[name](x), x)]
    assert not refused


@pytest.mark.parametrize("dtype", CASES, ids=str)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_fall_in_every_draw(name, dtype):
    fell = {seed for seed, x in draws(dtype) if not accepted(WRONG[name](x), x)}
    assert len(fell) == DRAWS, f"{DRAWS - len(fell)} of {DRAWS} draws accept {name}"


@pytest.mark.parametrize("name", SUBTLE)
def test_half_accumulation_falls_in_float32(name):
    fell = {seed for seed, x in draws(torch.float32) if not accepted(SUBTLE[name](x), x)}
    assert len(fell) == DRAWS, f"{DRAWS - len(fell)} of {DRAWS} draws accept {name}"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_the_bound_of_a_sum(dtype):
    bound = EXERCISES["vector_add"].bounds[dtype]
    for seed in range(DRAWS):
        x, y = torch.randn(2, 1000, generator=torch.Generator().manual_seed(seed)).to(dtype)
        exact = x.double() + y.double()
        assert Comparison(x + y, exact, bound).right
        assert Comparison((x.float() + y.float()).to(dtype), exact, bound).right
        assert not Comparison((1.02 * (x.float() + y.float())).to(dtype), exact, bound).right
        if dtype == torch.float32:
            assert not Comparison((x.half() + y.half()).float(), exact, bound).right


def truncated(x):
    """Cut off to 24 bits, as a matrix unit of NVIDIA's cuts off."""
    near = x.float()
    return torch.where(near.double().abs() > x.abs(), (near.view(torch.int32) - 1).view(torch.float32), near)


def accumulated(a, b, dtype, step=16, rounded=None):
    """a b, with an accumulator of `dtype` that is rounded after each `step` products."""
    acc = torch.zeros(len(a), b.shape[1], dtype=dtype)
    for left, right in zip(a.split(step, 1), b.split(step, 0)):
        total = acc.double() + left.double() @ right.double()
        acc = (rounded(total) if rounded else total).to(dtype)
    return acc


PRODUCTS = {
    "one call of torch": lambda a, b: a.float() @ b.float(),
    "four products after the other": lambda a, b: accumulated(a, b, torch.float32, 4),
    "16 products, cut off": lambda a, b: accumulated(a, b, torch.float32, 16, truncated),
    "in four parts": lambda a, b: sum(x.float() @ y.float() for x, y in zip(a.chunk(4, 1), b.chunk(4, 0))),
}


def products(dtype, k, values=""):
    matmul = EXERCISES["matmul"]
    case = matmul.inputs.case(dtype, m=15, n=48, k=k, values=values)
    for seed in range(6):
        a, b = (each.values for each in case.make(torch.Generator().manual_seed(seed)))
        bound = matmul.bounds[dtype].of_sums(matmul.sums(a, b))
        right = a.double() @ b.double()
        yield a, b, lambda output, right=right, bound=bound: Comparison(output.to(dtype), right, bound).right


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_accumulated_in_float32_are_within_the_bounds(name, dtype):
    for k, values in ((1, ""), (64, ""), (300, ""), (4133, ""), (4133, "numbers near 1")):
        assert all(accepts(PRODUCTS[name](a, b)) for a, b, accepts in products(dtype, k, values)), (k, values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("accumulator", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("step", [16, 64, 128])
def test_an_accumulator_in_half_precision_falls_where_k_is_long(accumulator, step, dtype):
    for a, b, accepts in products(dtype, 4133, "numbers near 1"):
        assert not accepts(accumulated(a, b, accumulator, step))


def test_tf32_falls_at_every_k():
    for k in (16, 100, 300, 4133):
        for a, b, accepts in products(torch.float32, k):
            assert not accepts(tf32(a).double() @ tf32(b).double())
