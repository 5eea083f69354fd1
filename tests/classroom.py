"""A small course with a judge of straw, for tests that are about submissions and not about kernels."""

from __future__ import annotations

import json
import sqlite3
import threading
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.preprocessors import ComputeChecksums
from sqlalchemy import event
from sqlalchemy.engine import Engine

from autograder.classroom.course import Course
from autograder.verdict import CaseResult, Finding, Verdict

EXERCISES = {
    "01_vector_add": {"vector_add": 5, "bug_hunt": 3},
    "02_naive_softmax": {"naive_softmax": 4},
}
ENTRIES = {"vector_add": "add", "bug_hunt": "scale", "naive_softmax": "naive_softmax"}


@event.listens_for(Engine, "connect")
def _without_waiting_for_the_disk(connection, _) -> None:
    """A database of a test may be lost with the machine. SQLite waits for the disk some hundred times in a file."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


def released(assignment: str) -> dict:
    """A released notebook as the build makes it: an answer cell and a locked check cell per exercise."""
    cells = [new_markdown_cell(f"# {assignment}: a lesson", id="cell-01")]
    for exercise, points in EXERCISES[assignment].items():
        common = {"schema_version": 3, "task": False}
        answer = {"grade_id": exercise, "grade": False, "solution": True, "locked": False, **common}
        check = {"grade_id": f"check-{exercise}", "grade": True, "solution": False, "locked": True, **common}
        starter = f"def {ENTRIES[exercise]}():\n    return 'starter'"
        cells.append(new_code_cell(starter, id=exercise, metadata={"nbgrader": answer}))
        graded = {"nbgrader": {**check, "points": points}}
        cells.append(new_code_cell(f'check("{exercise}")', id=f"check-{exercise}", metadata=graded))
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    notebook, _ = ComputeChecksums().preprocess(new_notebook(cells=cells, metadata=kernel), {})
    return json.loads(json.dumps(notebook))


def new_course(root: Path) -> Course:
    for assignment in EXERCISES:
        path = root / "release" / assignment / f"{assignment}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(released(assignment)))
    course = Course.open(root)
    course.create()
    return course


def filled(assignment: str = "01_vector_add", **answers: str) -> dict:
    """A released notebook with answers, as filled(vector_add="right"); the straw judge reads the word."""
    notebook = released(assignment)
    for name, word in answers.items():
        cell_of(notebook, name)["source"] = f"def {ENTRIES[name]}():\n    return {word!r}"
    return notebook


def cell_of(notebook: dict, name: str) -> dict:
    return next(c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name)


RIGHT = {"vector_add": "right", "bug_hunt": "right"}


class StrawJudge:
    """Right answers say "right", half right ones "half"; "boom" is a fault of the judge itself."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def judge(self, exercise: str, source: str) -> Verdict:
        points = next(e[exercise] for e in EXERCISES.values() if exercise in e)
        if "boom" in source:
            raise RuntimeError("the judge broke\nbadly")
        if "'right'" in source:
            return Verdict(exercise, True, points, points, "interpreter", cases=(CaseResult("n = 1"),))
        slug = "wrong-value" if "half" in source else "not-attempted"
        score = points / 2 if "half" in source else 0.0
        return Verdict(exercise, False, score, points, "interpreter", Finding(slug, f"{slug}: {source[:40]}"))


def submit(course: Course, student: str, content: object, assignment: str = "01_vector_add") -> Path:
    """Put a notebook (a dict) or a file's raw bytes where collect would."""
    path = course.notebook("submitted", student, assignment)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def zip_of(path: Path, files: dict[str, object]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, bytes | str) else json.dumps(content))
    return path


def at_the_same_moment(work: Callable[[Course], object], courses: Sequence[Course]) -> None:
    """work(course) for each course, in a thread of its own. No error is lost."""
    together, errors = threading.Barrier(len(courses), timeout=30), []

    def begin(course: Course) -> None:
        together.wait()
        try:
            work(course)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=begin, args=[course]) for course in courses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
