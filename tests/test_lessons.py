"""What the lessons promise the judge: answers come with the imports of their notebook's first cell."""

import ast
import json
from pathlib import Path

import pytest
import triton

from autograder.answer import from_notebook
from autograder.exercises import find
from autograder.lessons import answers
from workshop import recorded

ROOT = Path(__file__).resolve().parents[1]


def filled(lesson: str) -> dict:
    """The released notebook, with the course's answers in it."""
    notebook = json.loads((ROOT / "notebooks" / f"{lesson}.ipynb").read_text())
    solutions = answers(ROOT / "solutions" / f"{lesson}.py")
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = solutions.get(name, cell["source"])
    return notebook


LESSONS = {"01_vector_add": "vector_add", "04_fused_softmax": "fused_softmax"}


@pytest.mark.parametrize(("lesson", "exercise"), LESSONS.items())
def test_an_answer_may_use_what_its_lesson_imports(judge, lesson, exercise):
    """fused_softmax needs workshop, and takes explore along: a confined process can import nothing new."""
    source = from_notebook(filled(lesson), find(exercise))
    verdict = judge.judge(exercise, source)
    assert verdict.passed, verdict.message


def of_copy(file: str, size: int, provider: str) -> float:
    """The recorded share of the copy's speed."""
    return next(row.of_copy for row in recorded(file).rows if (row.size, row.provider) == (size, provider))


def test_what_lesson_1_says_of_block_sizes_was_recorded():
    """A block of 4 is slow, 256 is enough, and addition may be faster than a copy."""
    shares = {block: of_copy("h200_vector_add_float32", 2**28, f"BLOCK_SIZE={block}") for block in (4, 256, 4096)}
    assert shares[4] < 0.1
    assert abs(shares[256] - shares[4096]) < 0.05 and shares[256] > 1
    assert of_copy("h200_vector_add_float32", 2**28, "add") > 1


@pytest.mark.parametrize(("provider", "bound"), [("naive, block 256", 1 / 2), ("online, block 256", 2 / 3)])
def test_what_lessons_2_and_3_say_of_short_and_long_rows_was_recorded(provider, bound):
    assert of_copy("h200_softmax_float32", 1024, provider) > bound > of_copy("h200_softmax_float32", 8192, provider)


@pytest.mark.parametrize(
    ("columns", "element_size", "numbers"), [(1024, 4, 16), (8192, 2, 16), (16384, 4, 16), (16384, 2, 32)]
)
def test_what_lesson_4_says_of_the_numbers_of_a_thread(columns, element_size, numbers):
    """`rows` gives each thread of an NVIDIA GPU 16 numbers, and twice as many to wide rows in half precision."""
    tree = ast.parse((ROOT / "solutions" / "04_fused_softmax.py").read_text())
    function = next(node for node in tree.body if getattr(node, "name", "") == "rows_launch")
    names = {"triton": triton}
    exec(compile(ast.Module([function], []), "rows_launch", "exec"), names)
    launch = names["rows_launch"](columns, element_size)
    assert launch["ROWS"] * columns / (32 * launch["num_warps"]) == numbers


@pytest.mark.parametrize("file", sorted((ROOT / "benchmarks" / "recorded").glob("*.txt")), ids=lambda file: file.stem)
def test_what_a_tool_said_on_a_card_is_shown_in_a_lesson(file):
    assert any(file.name in script.read_text() for script in (ROOT / "solutions").glob("*.py"))


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("ncu", ["83.26", "90.81", "38.58", "127.84"]),
        ("proton", ["2813.717", "1287.163"]),
        ("inductor_softmax", ["R0_BLOCK", "XBLOCK", "16384 × 8192 float32"]),
    ],
)
def test_what_a_lesson_says_of_a_recording_is_in_it(tool, words):
    """Rounded in the prose: each number of it stands here as the file has it."""
    recording = (ROOT / "benchmarks" / "recorded" / f"h200_{tool}.txt").read_text()
    assert [word for word in words if word not in recording] == []


def test_lesson_5_says_why_it_does_not_use_pallas():
    assert "Pallas" in (ROOT / "solutions" / "05_jax_dropout.py").read_text()
