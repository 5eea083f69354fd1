"""The kernels of benchmarks/: right on every shape, and each launch of the tables fits the row it is for."""

import sys
from pathlib import Path

import pytest
import torch

import workshop

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from kernels import dropout, softmax  # noqa: E402

COLUMNS = (256, 781, 1024, 2048, 4096, 8192, 12672, 16384, 32768, 65536, 131072)
BOUNDS = {torch.float32: 1e-5, torch.bfloat16: 8e-3}
interpreted = pytest.mark.skipif(not workshop.device().interpreting, reason="small shapes, for the interpreter")


def error(y, x):
    expected = torch.softmax(x.double(), dim=1)
    return ((y.double() - expected).abs() / expected.clamp(min=torch.finfo(x.dtype).tiny)).max().item()


@interpreted
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("columns", (1, 7, 17, 256, 781, 1025, 3000, 12672, 33000))
def test_softmax_is_right_for_any_row(columns, dtype):
    x = torch.randn(5, columns).to(dtype)
    strided = torch.randn(5, columns + 3).to(dtype)[:, :columns]
    for given in (x, strided):
        assert error(softmax.softmax(given), given) < BOUNDS[dtype]
    if columns <= softmax.WIDE:
        assert error(softmax.rows_softmax(x), x) < BOUNDS[dtype]


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


@pytest.mark.parametrize("backend, capability", (("cuda", 90), ("cuda", 80), ("hip", 0), ("interpreter", 0)))
@pytest.mark.parametrize("dtype", (torch.float32, torch.float16, torch.bfloat16), ids=str)
def test_every_launch_covers_its_row(dtype, backend, capability):
    for columns in (*range(1, 300), *COLUMNS, 781 * 3, 100_000, 200_000):
        for ragged in (False, True):
            launch = softmax.choose(dtype, columns, ragged, backend, capability)
            sizes = launch.constants
            if launch.kernel is softmax.tile_kernel:
                full = sizes["A"] + sizes["B"]
                assert full <= columns <= full + sizes["REST"]
                assert sizes["VECTOR"] == 1 or full + sizes["VECTOR"] - 1 <= columns
            elif launch.kernel is softmax.cluster_kernel:
                assert backend == "cuda" and capability >= 90
                assert sizes["MASKED"] or sizes["PROGRAMS"] * sizes["PART"] == columns
                assert sizes["PROGRAMS"] * sizes["PART"] >= columns
            if backend != "cuda":
                assert not sizes.get("PACKED") and "maxnreg" not in launch.options


@interpreted
def test_dropout_draws_the_same_mask_in_both_passes():
    n, p = 5000, torch.tensor([0.3])
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
