"""What the lessons promise the judge: answers come with the imports of their notebook's first cell."""

import json
from pathlib import Path

import pytest

from autograder.answer import from_notebook
from autograder.exercises import find
from autograder.judge import Judge
from autograder.lessons import answers

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
def test_an_answer_may_use_what_its_lesson_imports(lesson, exercise):
    """fused_softmax needs workshop, and takes explore along: a confined process can import nothing new."""
    source = from_notebook(filled(lesson), find(exercise))
    with Judge() as judge:
        verdict = judge.judge(exercise, source)
    assert verdict.passed, verdict.message
