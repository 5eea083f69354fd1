"""What a grade rests on: the file, the answers in it, the exercises, the judge. It is kept while all are the same.

The record is in the metadata of the autograded notebook, which is written last: where it is, the grade is in the
database, too. A run that was killed goes on from there.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

from ..course import Course
from ..submission import cells_of, exercise_of, grade_id, is_check, read_bounded

NAME = "autograder"  # of the record in the notebook's metadata
_NOT_THE_JUDGE = ("classroom", "cli.py", "course.py", "lessons.py", "notebook.py", "selftest.py", "exercises")


def file_hash(path: Path) -> str:
    """Says whether a submitted file is the same; "" where there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def answers_hash(path: Path) -> str:
    """Says whether the text in a notebook's cells is the same, whatever its outputs are; "" where it is none."""
    try:
        cells = cells_of(read_bounded(path))
    except (ValueError, OSError):
        return ""
    return hash_of(cells)


def graded_by(course: Course, assignment: str, judge: str, backend: str) -> dict[str, str]:
    """Says whether an assignment would be graded in the same way: exercises, points, judge, backend, gradebook."""
    checks = [c for c in course.released.get(assignment, {"cells": []})["cells"] if is_check(c)]
    exercises = {
        f"exercise {(name := exercise_of(grade_id(cell)))}": hash_of(
            [cell["metadata"]["nbgrader"]["points"], exercise_version(name)]
        )
        for cell in checks
    }
    return {**exercises, "judge": judge, "backend": backend, "gradebook": hash_of(course.gradebook_name)}


@functools.cache
def judge_version() -> str:
    """Changes with the judge's source, with the packages that a verdict depends on, and with this card."""
    import torch

    import workshop

    from ...judge.proof import stack

    package = Path(__file__).parents[2]
    files = [f for f in package.rglob("*.py") if f.relative_to(package).parts[0] not in _NOT_THE_JUDGE]
    files += Path(workshop.__file__).parent.rglob("*.py")
    card = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return hash_of([_hash_files(files), stack(), card])


@functools.cache
def exercise_version(name: str) -> str:
    """Changes with the module that defines an exercise, and with what such modules share."""
    modules = sorted((Path(__file__).parents[2] / "exercises").glob("*.py"))
    defining = {path for path in modules if "EXERCISES" in path.read_text() and path.stem != "__init__"}
    own = {path for path in defining if f'"{name}"' in path.read_text()}
    return _hash_files([path for path in modules if path in own or path not in defining])


def record_of(course: Course, student: str, assignment: str) -> dict:
    """What is recorded about the grade of a submission; {} where it was not graded, or not by this judge."""
    try:
        record = json.loads(course.notebook("autograded", student, assignment).read_bytes())["metadata"][NAME]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return record if isinstance(record, dict) else {}


def is_stale(course: Course, student: str, assignment: str) -> bool:
    """Was something else collected than what was graded? No where nothing is known about either."""
    record = record_of(course, student, assignment)
    now = file_hash(submitted_notebook(course, student, assignment))
    return bool(record.get("submitted") and now and now != record["submitted"])


def submitted_notebook(course: Course, student: str, assignment: str) -> Path:
    """The submitted notebook: the one with the assignment's name, or the only one there is."""
    expected = course.notebook("submitted", student, assignment)
    there = sorted(expected.parent.glob("*.ipynb"))
    return there[0] if len(there) == 1 else expected


def hash_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("utf-8", "replace")).hexdigest()


def _hash_files(files: list[Path]) -> str:
    return hash_of([(path.name, file_hash(path)) for path in sorted(files)])
