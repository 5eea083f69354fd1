"""On a GPU: every lesson runs with all checks green, and the box survives what kernels do to a card."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder.exercises import EXERCISES
from autograder.exercises.softmax import ONLINE_TEMPLATE
from autograder.exercises.vector_add import ADD_TEMPLATE
from autograder.gallery import answers_in
from autograder.judge import this_backend

ROOT = Path(__file__).resolve().parents[1]
LESSONS = sorted((ROOT / "solutions").glob("*.py"))

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(this_backend() == "interpreter", reason="needs a GPU"),
]


@pytest.mark.parametrize("script", LESSONS, ids=lambda path: path.stem)
def test_the_lesson_runs_with_all_checks_green(script, tmp_path):
    if "jax" in script.stem:
        pytest.importorskip("jax_triton")
    path = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"
    environment = os.environ | {"WORKSHOP_PROGRESS": str(tmp_path / "progress.json"), "PYTHONPATH": path}
    start = time.monotonic()
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=580, env=environment)
    print(done.stdout, done.stderr[-3000:], f"{time.monotonic() - start:.0f} s", sep="\n")
    assert done.returncode == 0
    assert "PASS" in done.stdout and "NOT YET" not in done.stdout


def test_the_box_is_confined_on_the_gpu(judge):
    assert judge.box.confine and judge.backend in ("cuda", "hip")
    assert judge.judge("vector_add", ADD_TEMPLATE).score == 5


@pytest.mark.parametrize("answer", answers_in(ROOT / "tests", ["rms_norm_op"]), ids=lambda each: each.name)
def test_an_operator_is_judged_by_the_executor_too(judge, answer):
    """Only the executor's box asks torch.library.opcheck and torch.compile."""
    assert judge.checker.verdict_on(EXERCISES["rms_norm_op"], answer.source).passed == (answer.slug is None)


@pytest.fixture
def card(judge, monkeypatch):
    """The judge without the executor's opinion, which would find most of this before the card does."""
    monkeypatch.setattr(judge, "checker", None)
    return judge


@pytest.mark.parametrize(
    "old, new, diagnoses",
    [
        # far outside: the driver reports it, and the process' context is lost
        ("x_ptr + offsets,", "x_ptr + offsets.to(tl.int64) * 1000000007,", {"crash"}),
        ("output = x + y", "output = x + y\n    while pid >= 0:\n        output += tl.load(x_ptr)", {"timeout"}),
        ("offsets, output, mask=mask)", "offsets, output)", {"out-of-bounds-store"}),
        ("mask = offsets < n_elements", "mask = offsets < n_elements - 1", {"unwritten-output", "tail-wrong"}),
    ],
)  # fmt: skip
def test_a_kernel_that_harms_the_card_harms_nobody_else(card, old, new, diagnoses):
    assert old in ADD_TEMPLATE
    verdict = card.judge("vector_add", ADD_TEMPLATE.replace(old, new))
    assert verdict.diagnosis in diagnoses, verdict.to_text()
    assert card.judge("online_softmax", ONLINE_TEMPLATE).score == 5


def test_a_load_that_no_card_reports_is_found(judge):
    """A missing mask on a load changes no value: the memory checker sees it all the same."""
    source = ADD_TEMPLATE.replace("tl.load(x_ptr + offsets, mask=mask)", "tl.load(x_ptr + offsets)")
    verdict = judge.judge("vector_add", source)
    assert (verdict.diagnosis, verdict.backend) == ("out-of-bounds-load", judge.backend)


def test_what_lies_behind_a_tensor_differs_between_two_looks(card):
    """The first look has NaN there, and tl.maximum passes over it."""
    behind = "tl.maximum(tl.load(x_ptr + n_elements), 0.0)"
    source = ADD_TEMPLATE.replace("output = x + y", f"output = x + y + ({behind} > 1e3).to(tl.float32)")
    assert source != ADD_TEMPLATE and not card.judge("vector_add", source).passed


def test_a_kernel_cannot_find_the_reference(card):
    """Within 64 MiB around its output there is no tensor that holds the expected values."""
    source = ADD_TEMPLATE.replace("output = x + y", "output = tl.load(output_ptr + offsets + 16777216 // 4, mask=mask)")
    assert not card.judge("vector_add", source).passed
