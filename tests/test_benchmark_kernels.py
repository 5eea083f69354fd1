"""The kernels of benchmarks/: right on every shape, and each launch fits the row it is for."""

import importlib
import sys
from pathlib import Path

import pytest
import torch

import workshop

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from kernels import backward, dropout, softmax  # noqa: E402

timing = importlib.import_module("timing")
drawn_sizes = importlib.import_module("drawn")

COLUMNS = (256, 781, 1024, 2048, 4096, 8192, 12672, 16384, 32768, 65536, 131072)
BOUNDS = {torch.float32: 1e-5, torch.bfloat16: 8e-3, torch.float16: 1e-3}
interpreted = pytest.mark.skipif(not workshop.device().interpreting, reason="small shapes, for the interpreter")


def error(y, x):
    expected = torch.softmax(x.double(), dim=1)
    return ((y.double() - expected).abs() / expected.clamp(min=torch.finfo(x.dtype).tiny)).max().item()


def views(rows, columns, dtype, device="cpu"):
    """Matrices of one shape: contiguous, rows that are apart by a whole number of words or not, a shifted beginning."""
    whole = torch.randn(rows, columns + 16, device=device).to(dtype)
    shifted = torch.randn(rows * columns + 1, device=device).to(dtype)[1:].view(rows, columns)
    return whole[:, :columns].contiguous(), whole[:, :columns], whole[:, 3 : columns + 3], shifted


@interpreted
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("columns", (1, 7, 17, 203, 256, 781, 1025, 3000, 12672, 33000))
def test_softmax_is_right_for_any_row(columns, dtype):
    for x in views(5, columns, dtype):
        assert error(softmax.softmax(x), x) < BOUNDS[dtype]
    if columns <= 32768:
        assert error(softmax.rows_softmax(x), x) < BOUNDS[dtype]


@interpreted
@pytest.mark.parametrize("columns", (5000, 5003))
@pytest.mark.parametrize("launch", ({"lanes": 32, "stripes": 2, "again": 2}, {"lanes": 64, "stripes": 1, "again": 3}))
def test_softmax_of_rows_that_are_read_twice(columns, launch):
    x = torch.randn(3, columns)
    y = torch.full_like(x, float("nan"))
    given = softmax.stripes_launch(x.dtype, columns, 4, columns % 4 != 0, "interpreter", **launch)
    assert given.constants["AGAIN"]
    softmax.prepared(given, x, (columns, columns, 3, columns))(x, y)
    assert error(y, x) < BOUNDS[x.dtype]


@pytest.mark.gpu
@pytest.mark.skipif(workshop.device().interpreting, reason="needs a GPU")
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_softmax_on_a_gpu(dtype):
    """In clusters too, and launched without Triton."""
    for columns in (1, 203, 781, 12672, 40001, 50257, 151936, 300001, 600001):
        for x in views(37, columns, dtype, "cuda"):
            assert error(softmax.softmax(x), x) < BOUNDS[dtype], columns
    x = torch.full((2, 100_000), -float("inf"), device="cuda").to(dtype)
    x[1, 3] = 0
    y = softmax.softmax(x)
    assert y[0].isnan().all() and y[1, 3] == 1 and y[1].sum() == 1


@interpreted
def test_softmax_of_infinities():
    x = torch.full((2, 1000), -float("inf"))
    x[1, 3] = 0.0
    y = softmax.softmax(x)
    assert y[0].isnan().all()
    assert y[1, 3] == 1 and y[1].sum() == 1


def test_softmax_refuses_what_it_cannot_take():
    with pytest.raises(ValueError, match="side by side"):
        softmax.softmax(torch.randn(4, 4).T)
    with pytest.raises(TypeError, match="int64"):
        softmax.softmax(torch.ones(2, 2, dtype=torch.int64))


@pytest.mark.parametrize(
    "backend, capability", (("cuda", 100), ("cuda", 90), ("cuda", 80), ("hip", 0), ("interpreter", 0))
)
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_every_launch_covers_its_row(dtype, backend, capability):
    wide = [round(300 * 1.07**power) for power in range(121)]  # to a million
    for columns in (*range(1, 300), *COLUMNS, *wide):
        for stride, address in ((columns, 0), (columns + 16, 0), (columns + 1, 0), (columns, dtype.itemsize)):
            vector, ragged = softmax.words(dtype, columns, stride, address)
            launch = softmax.choose(dtype, columns, vector, ragged, backend, capability)
            sizes = launch.constants
            width = sizes["PROGRAMS"] * sizes["STRIPE"]
            whole = columns // vector * vector  # columns in whole words, at most
            assert sizes["AGAIN"] or sizes["STRIPES"] * width >= whole
            assert sizes["FULL"] * width <= (whole if not ragged else columns - vector + 1)
            assert not sizes["AGAIN"] or sizes["FULL"] == sizes["STRIPES"]
            assert sizes["ROWS"] == 1 or sizes["PROGRAMS"] == 1 and not sizes["AGAIN"]
            threads = sizes["ROWS"] * sizes["STRIPE"] // vector
            warp = 64 if backend == "hip" else 32
            assert threads == launch.options["num_warps"] * warp <= 1024
            if ragged:  # a thread for each of the row's ends, and room for them
                assert sizes["STRIPE"] // vector >= 2 * vector and columns >= 4 * vector
            if backend != "cuda":
                assert not sizes["PACKED"] and "maxnreg" not in launch.options
            if capability < 90:
                assert sizes["PROGRAMS"] == 1


@pytest.mark.gpu
@pytest.mark.skipif(workshop.device().interpreting, reason="needs a GPU")
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_gradients_on_a_gpu(dtype):
    """In clusters too, and where a matrix is loaded again."""
    for columns in (203, 781, 12672, 40001, 50257, 151936, 200001, 250001):
        y = torch.softmax(torch.randn(37, columns, device="cuda"), dim=1).to(dtype)
        dy = torch.randn(37, columns, device="cuda").to(dtype)
        product = y.double() * dy
        expected = product - y.double() * product.sum(1, keepdim=True)
        bound = max(BOUNDS[dtype], 1e-2 * (dtype == torch.float16))  # denormal numbers
        assert timing.whole_error(backward.softmax_backward(y, dy), expected) < bound, columns
        targets = torch.randint(0, columns, (37,), device="cuda")
        targets[::5] = -100
        logits, wide = dy.clone().requires_grad_(), dy.double().requires_grad_()
        (2 * backward.cross_entropy(logits, targets)).backward()
        (2 * torch.nn.functional.cross_entropy(wide, targets)).backward()
        assert timing.whole_error(logits.grad, wide.grad) < bound, columns
        rstd = torch.rand(37, device="cuda")
        expected = (y.double() * dy * rstd[:, None]).sum(0)
        assert timing.whole_error(backward.rms_norm_weight_grad(y, dy, rstd), expected) < 1e-6, columns


@interpreted
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("columns", (5, 203, 256, 781, 5000))
def test_gradients_are_right_for_any_row(columns, dtype):
    def check(found, expected):
        assert timing.whole_error(found, expected) < BOUNDS[dtype]

    y, dy = torch.softmax(torch.randn(5, columns), dim=1).to(dtype), torch.randn(5, columns).to(dtype)
    product = y.double() * dy
    check(backward.softmax_backward(y, dy), product - y.double() * product.sum(1, keepdim=True))

    targets = torch.randint(0, columns, (37,))
    targets[::5] = -100
    logits = torch.randn(37, columns).to(dtype).requires_grad_()
    wide = logits.detach().double().requires_grad_()
    expected = torch.nn.functional.cross_entropy(wide, targets)
    loss = backward.cross_entropy(logits, targets)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    (3 * loss).backward()
    check(logits.grad, torch.autograd.grad(3 * expected, wide)[0])

    x, dy, rstd = torch.randn(37, columns).to(dtype), torch.randn(37, columns).to(dtype), torch.rand(37)
    found = backward.rms_norm_weight_grad(x, dy, rstd)
    assert timing.whole_error(found, (x.double() * dy * rstd[:, None]).sum(0)) < 1e-6


@interpreted
@pytest.mark.parametrize("rows, columns", ((1, 1), (7, 1), (1, 300), (33, 7), (0, 5)))
def test_gradient_of_a_weight_of_few_elements(rows, columns):
    x, dy, rstd = torch.randn(rows, columns), torch.randn(rows, columns), torch.rand(rows)
    expected = (x.double() * dy * rstd[:, None]).sum(0)
    torch.testing.assert_close(backward.rms_norm_weight_grad(x, dy, rstd).double(), expected, rtol=1e-5, atol=1e-5)


@interpreted
def test_gradient_of_softmax_that_loads_a_matrix_again():
    y, dy = torch.softmax(torch.randn(3, 1003), dim=1), torch.randn(3, 1003)
    launch = backward.backward_launch(torch.float32, 1003, 0, "interpreter", 0)
    constants = launch.constants | {"STRIPE": 128, "STRIPES": 8, "FULL": 7, "ROWS": 1, "KEPT": 3}
    dx = torch.full_like(y, float("nan"))
    launch.kernel[(3,)](y, dy, dx, *y.shape, **constants, num_warps=1)
    product = y.double() * dy
    assert timing.whole_error(dx, product - y.double() * product.sum(1, keepdim=True)) < 1e-6


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_every_launch_of_a_gradient_covers_its_row(dtype):
    for columns in (*range(1, 300), *COLUMNS, *(round(300 * 1.07**power) for power in range(100))):
        sizes = backward.backward_launch(dtype, columns, 0, "cuda", 90).constants
        vector, ragged = softmax.words(dtype, columns, columns, 0)
        assert sizes["STRIPES"] * sizes["PROGRAMS"] * sizes["STRIPE"] >= columns // vector * vector
        assert sizes["KEPT"] in (sizes["STRIPES"], backward.AT_ONCE)
    with pytest.raises(ValueError, match="too long"):
        backward.backward_launch(dtype, 10_000_000, 0, "cuda", 90)
    with pytest.raises(ValueError, match="too long"):
        backward.backward_launch(torch.float32, 100_000, 0, "cuda", 80)


def test_words_are_as_wide_as_the_rows_allow():
    assert softmax.words(torch.float32, 1024, 1024, 0) == (4, False)
    assert softmax.words(torch.bfloat16, 50257, 50257, 0) == (8, True)
    assert softmax.words(torch.bfloat16, 203, 203, 0) == (4, True)  # short rows: half a word
    assert softmax.words(torch.bfloat16, 204, 204, 0) == (4, False)
    assert softmax.words(torch.bfloat16, 1000, 1004, 0) == (4, False)  # x and y begin at other places
    assert softmax.words(torch.float32, 1024, 1024, 4) == (1, False)
    assert softmax.words(torch.float16, 7, 7, 0) == (1, False)


def test_drawn_widths():
    for seed in (1, 2, 3):
        drawn = drawn_sizes.drawn_columns(60, seed)
        assert drawn == drawn_sizes.drawn_columns(60, seed) and len(set(drawn)) == 70
        assert set(drawn_sizes.BEST_KNOWN) < set(drawn)
        assert min(drawn) >= 200 and max(drawn) <= 262_144 + 1
        assert sum(columns % 2 == 1 or columns % 16 == 8 for columns in drawn) >= 30


@interpreted
def test_one_wrong_element_is_seen():
    expected = torch.rand(100, 77).double() + 0.1
    result = expected.float()
    assert timing.relative_error(result, expected) < 1e-7
    result[3, 4] *= 1.01
    assert timing.relative_error(result, expected) == pytest.approx(0.01, rel=1e-3)
    result[99, 76] = float("nan")
    assert timing.relative_error(result, expected) == float("inf")
    assert timing.relative_error(result[:50], expected) == float("inf")


@interpreted
@pytest.mark.parametrize("n", (4096, 5000, 5001))
def test_dropout_draws_the_same_mask_in_both_passes(n):
    p = torch.tensor([0.3])
    x, dy, seed = torch.randn(n), torch.randn(n), torch.tensor([5], dtype=torch.int32)
    y, dx = torch.full_like(x, float("nan")), torch.full_like(x, float("nan"))
    grid = (-(-n // (4 * dropout.QUARTER)),)
    dropout.leaky_dropout_kernel[grid](x, p, seed, y, n=n, QUARTER=dropout.QUARTER)
    dropout.leaky_dropout_backward_kernel[grid](x, dy, p, seed, dx, n=n, QUARTER=dropout.QUARTER)
    slope = torch.where(x >= 0, 1.0, 0.01)
    kept = y != 0
    assert abs(kept.double().mean() - 0.7) < 6 * (0.21 / n) ** 0.5
    torch.testing.assert_close(y, torch.where(kept, x * slope / 0.7, 0.0))
    torch.testing.assert_close(dx, torch.where(kept, dy * slope / 0.7, 0.0))


def test_the_lesson_shows_the_measured_kernel():
    """`rows_kernel` and its launch are written in lesson 4 and in benchmarks/: the same code."""
    lesson = (Path(__file__).parents[1] / "solutions" / "04_fused_softmax.py").read_text()
    ours = Path(softmax.__file__).read_text()

    def statements(text, name):
        body = text[text.index(f"def {name}(") :]
        lines = body[: body.index("\n\n\n")].splitlines()
        return [line.strip() for line in lines if "=" in line and "#" not in line and '"""' not in line]

    assert statements(lesson, "rows_kernel") == statements(ours, "rows_kernel")
    for columns in COLUMNS:
        namespace = {"triton": softmax.triton}
        exec(lesson[lesson.index("def rows_launch(") : lesson.index("def rows_softmax(")], namespace)
        for size in (2, 4):
            assert namespace["rows_launch"](columns, size) == softmax.rows_launch(columns, size)
