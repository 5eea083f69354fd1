"""The answers that the lessons' questions give are right: computed here, not copied."""

import sys
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from workshop import KNOWN_DEVICES, explore, progress, recorded, xray
from workshop.hints import solution_source
from workshop.occupancy import occupancy, programs_by_resource
from workshop.syllabus import QUESTIONS, Estimate, Question


def right(name: str) -> str:
    return QUESTIONS[name].right


def kernel(exercise: str, tmp_path):
    """The kernel of the course's own solution."""
    import importlib.util

    file = tmp_path / f"{exercise}.py"
    head = "import functools\nimport torch\nimport triton\nimport triton.language as tl\n"
    file.write_text(head + solution_source(exercise))
    spec = importlib.util.spec_from_file_location(exercise, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_has_one_right_answer_and_a_reason_for_each(name):
    question = QUESTIONS[name]
    if isinstance(question, Estimate):
        assert question.low <= question.right <= question.high and len(question.why) > 20
        return
    assert isinstance(question, Question) and len(question.options) >= 2
    assert question.right in question.options
    assert all(len(reason) > 20 for reason in question.options.values())


def test_programs_and_lanes():
    programs = triton.cdiv(98_432, 1024)
    assert right("programs and lanes") == f"{programs} programs, {programs * 1024 - 98_432} lanes"


def test_five_steps(tmp_path):
    moved = kernel("bytes_moved", tmp_path).bytes_moved(4096, 8192, 4)
    ratio = (moved["torch_read"] + moved["torch_written"]) / (moved["fused_read"] + moved["fused_written"])
    assert QUESTIONS["five steps"].right == pytest.approx(ratio, abs=0.01)


@pytest.mark.parametrize(("exercise", "moved"), [("naive_softmax", 16), ("online_softmax", 12)])
def test_the_bytes_of_a_kernel_are_counted(exercise, moved, tmp_path):
    asked = explore.predict_bytes(getattr(kernel(exercise, tmp_path), exercise), torch.randn(2, 300))
    assert asked.question.right == moved and asked.question.low <= moved <= asked.question.high
    assert "[2, 300]" in asked.question.ask
    assert right("three passes") == "half of a copy"


def test_a_function_that_launches_nothing_moves_nothing():
    assert explore.predict_bytes(lambda x: x, torch.ones(3)).question.right == 0


def test_no_rescale():
    row = 3 * torch.randn(781, generator=torch.Generator().manual_seed(0))

    def without_rescale(row):
        m, d = -torch.inf, 0.0
        for block in row.split(256):
            m = max(m, block.max().item())
            d += torch.exp(block - m).sum().item()
        return d

    orders = {"sorted upwards": row.sort().values, "sorted downwards": row.sort(descending=True).values}
    fits = [
        name
        for name, row in orders.items()
        if without_rescale(row) == pytest.approx(torch.exp(row - row.max()).sum().item(), rel=1e-4)
    ]
    assert fits == [right("no rescale")]


@pytest.mark.skipif(torch.accelerator.is_available(), reason="runs the kernel on the interpreter")
def test_nan_rows(tmp_path):
    x = torch.randn(4, 781)
    for row, count in enumerate((0, 100, 256, 781)):
        x[row, :count] = -torch.inf
    found = kernel("online_softmax", tmp_path).online_softmax(x).isnan().any(dim=1).nonzero().flatten().tolist()
    assert found == [2, 3] and right("nan rows") == "in rows 2 and 3"


def test_barriers(tmp_path):
    function = kernel("online_softmax", tmp_path).online_softmax_kernel
    barriers = {}
    for warps in (1, 4):
        made = xray(function, "*fp32", "*fp32", 1024, 1024, 1024, BLOCK_SIZE=256, num_warps=warps, targets="gfx942")
        barriers[warps] = made["gfx942"].barriers
    assert str(barriers[1]) == right("barriers") and barriers[4] > 0
    if triton.__version__.startswith("3.7"):
        assert barriers[4] == 6


def test_the_price_of_a_wish(tmp_path):
    function = kernel("fused_softmax", tmp_path).fused_softmax_kernel
    shape = ("*fp32", "*fp32", 16384, 16384, 4096, 16384)
    spills = {
        waves: xray(
            function, *shape, BLOCK_SIZE=16384, num_stages=1, num_warps=4, waves_per_eu=waves, targets="gfx942"
        )["gfx942"].spills
        for waves in (0, 4, 8)
    }
    assert right("a wish") == "above 4 waves" and spills[0] == spills[4] == 0 < spills[8]


def test_every_prediction_has_a_control():
    """No prediction is a sentence before a cell that gives the answer away."""
    for script in sorted((Path(__file__).parents[1] / "solutions").glob("*.py")):
        cells = script.read_text().split("\n# %%")
        for cell, following in zip(cells, cells[1:], strict=False):
            if "**Predict" in cell or cell.rstrip().endswith("# ## Predict"):
                assert "explore.predict" in following, f"{script.name}: {cell[-300:]}"


def test_waves():
    waves = int(occupancy(170, 0, 4, "gfx942"))
    most = max(vgprs for vgprs in range(1, 512) if occupancy(vgprs, 0, 4, "gfx942") == waves + 1)
    words = {2: "2 waves; a third", 3: "3 waves; a fourth"}
    assert right("waves") == f"{words[waves]} up to {most}"


def test_programs_at_once():
    resources = programs_by_resource(40, 4112, 4, KNOWN_DEVICES["NVIDIA H200"])
    scarcest = min(resources, key=lambda name: resources[name][2])
    assert right("programs at once") == f"{resources[scarcest][2]}, by {scarcest}"
    others = {f"{fits}, by {name}" for name, (_, _, fits) in resources.items()}
    assert set(QUESTIONS["programs at once"].options) == others


def shares(file: str, provider: str) -> dict[int, float]:
    return {row.size: row.of_copy for row in recorded(file).rows if row.provider == provider}


def test_what_recorded_curves_answer():
    fused, rows = (shares("h200_softmax_float32", f"fused, {kind}") for kind in ("persistent", "rows"))
    assert right("persistent") == "at none" and not any(fused[n] > rows[n] for n in fused if n <= 32768)
    assert sum(n <= 32768 for n in fused) == 9  # the sizes that the lesson asks about
    half = shares("h200_softmax_bfloat16", "fused, persistent")
    assert right("half the bytes") == "less" and half[1024] < fused[1024]
    speeds = {
        row.provider: row.gbps.median for row in recorded("h200_leaky_dropout_float32").rows if row.size == 32768
    }
    assert right("kernel and XLA") == pytest.approx(speeds["Triton"] / speeds["jax.jit (XLA)"], abs=0.1)


@pytest.mark.skipif(torch.accelerator.is_available(), reason="nothing is counted on a GPU")
def test_padding():
    from workshop import count_bytes

    @triton.jit
    def one_block(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        lanes = tl.arange(0, BLOCK)
        tl.store(y_ptr + lanes, tl.load(x_ptr + lanes, mask=lanes < n), mask=lanes < n)

    x = torch.rand(781)
    moved = count_bytes(lambda x: one_block[(1,)](x, torch.empty_like(x), 781, BLOCK=1024), x)
    assert moved.bytes_read == 4 * int(right("padding"))


def test_published_dropout():
    u, x = torch.rand(1000), torch.randn(1000)
    kept = torch.where(u > 1.0, 1.0, 0.0)
    assert right("rate one") == "nan" and (x * kept / (1.0 - 1.0)).isnan().all()
    assert right("fixed key") == "all"


@triton.jit
def rand_kernel(y_ptr, seed, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.rand(seed, offsets))


@triton.jit
def rand4x_kernel(y_ptr, seed, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    u0, u1, u2, u3 = tl.rand4x(seed, offsets)
    tl.store(y_ptr + offsets, u0)
    tl.store(y_ptr + BLOCK + offsets, u1)
    tl.store(y_ptr + 2 * BLOCK + offsets, u2)
    tl.store(y_ptr + 3 * BLOCK + offsets, u3)


def test_four_numbers():
    words = ("v_mul_hi_u32", "v_mul_lo_u32", "v_mad_u64_u32")
    one, four = (
        len(xray(kernel, "*fp32", "i32", BLOCK=block, targets="gfx942").isa().grep(*words).splitlines())
        for kernel, block in ((rand_kernel, 1024), (rand4x_kernel, 256))
    )
    assert right("four numbers") == "less than a third" and 3 < one / four < 4.2


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKSHOP_PROGRESS", str(tmp_path / "progress.json"))
    return progress


def test_the_first_choice_is_kept_and_shown_again(kept):
    asked = explore.predict("barriers")
    asked.choose("1")
    asked.choose("0")
    again = explore.predict("barriers")
    assert again.said == "1" and "You said “1”; it is “0”" in again._repr_html_()
    assert " open><summary>1</summary>" in again._repr_html_()
    assert kept().foreseen().startswith("Predictions: 0 of 1 right") and kept().score == 0


def test_an_estimate_is_kept_and_a_near_one_counts(kept):
    explore.predict("five steps").choose("4.5")
    assert "You said 4.5, it is 4" in explore.predict("five steps")._repr_html_()
    assert kept().foreseen().startswith("Predictions: 1 of 1 right")


@pytest.mark.parametrize(("name", "choice"), [("barriers", "7"), ("five steps", "many"), ("five steps", "99")])
def test_what_is_no_choice_is_not_kept(kept, name, choice):
    explore.predict(name).choose(choice)
    assert kept().predictions == {}


def test_a_choice_of_the_page_reaches_its_question_alone(monkeypatch):
    heard = []
    asking = sys.modules["workshop.explore.predict"]
    monkeypatch.setitem(asking._asked, "barriers", heard.append)
    for message in ({"name": "barriers", "choice": "1"}, {"name": "other", "choice": "1"}, "nonsense", None):
        asking._hear(None, message, [])
    assert heard == ["1"]


def test_answers_unfold_without_a_script_and_are_never_in_the_text(kept):
    asked = explore.predict("barriers")
    assert asked._repr_html_().count("<details ") == 3
    assert "exchange numbers" not in repr(asked)


def test_an_unknown_question_is_refused():
    with pytest.raises(ValueError, match="order of programs"):
        explore.predict("nothing")
