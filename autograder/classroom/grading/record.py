"""What a grade rests on: the file, the answers in it, the exercises, the judge. It is kept while all are the same.

The record is in the metadata of the autograded notebook, which is written last: where it is, the grade is in the
database, too. A run that was killed goes on from there.
"""

import functools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ...versions import stack
from ..course import Course, file_hash, hash_of
from ..submission import answers_in, cells_of, checks_in, read_bounded

NAME = "autograder"  # of the record in the notebook's metadata
_NOT_THE_JUDGE = ("classroom", "cli.py", "lessons.py", "notebook.py", "selftest.py", "exercises")


def graded_by(course: Course, assignment: str, judge: str, backend: str) -> dict[str, str]:
    """Says whether an assignment would be graded in the same way: exercises, points, judge, backend, gradebook."""
    exercises = {
        f"exercise {name}": hash_of([cell["metadata"]["nbgrader"]["points"], exercise_version(name)])
        for name, _, cell in course.checks(assignment)
    }
    gradebook = course.db_url.replace(str(course.root), "")  # the same in a course that was moved or copied
    return {**exercises, "judge": judge, "backend": backend, "gradebook": hash_of(gradebook)}


class Place(NamedTuple):
    """What a grade depends on where it is given, beside exercise and gradebook."""

    version: str
    backend: str


def place() -> Place:
    """What this machine would judge with."""
    return Place(judge_version(), _backend_and_card()[0])


@functools.cache
def judge_version() -> str:
    """Changes with the judge's source, with the packages that a verdict depends on, and with this card."""
    package = Path(__file__).parents[2]
    beside = package.parent / "workshop"
    files = [f for f in package.rglob("*.py") if f.relative_to(package).parts[0] not in _NOT_THE_JUDGE]
    files += [*beside.rglob("*.py"), beside / "advice.toml"]
    return hash_of([_hash_files(files), stack(), _backend_and_card()[1]])


@functools.cache
def _backend_and_card() -> tuple[str, str]:
    """As torch says. It is not asked where it was built without cards: its import takes longer than all that follows.

    That matters where nothing is to be judged, because nothing is new.
    """
    if stack().get("torch", "").endswith("+cpu"):
        return "interpreter", ""
    import torch

    from ...judge import this_backend

    return this_backend(), torch.cuda.get_device_name() if torch.cuda.is_available() else ""


@functools.cache
def exercise_version(name: str) -> str:
    """Changes with the module that defines an exercise, and with what such modules share."""
    modules = sorted((Path(__file__).parents[2] / "exercises").glob("*.py"))
    defining = {path for path in modules if "EXERCISES" in path.read_text() and path.stem != "__init__"}
    own = {path for path in defining if re.search(rf'"{name}["(]', path.read_text())}
    return _hash_files([path for path in modules if path in own or path not in defining])


@dataclass(frozen=True)
class Judged:
    """An exercise of a graded submission. `verdict` is its JSON; `points` are what the judge gave."""

    verdict: dict
    points: float
    answer: str

    @property
    def message(self) -> str:
        return str(self.verdict.get("message", ""))


@dataclass(frozen=True)
class Graded:
    """What autograded/ holds of a submission: the record of its grade, and its exercises by name. Empty if not ours."""

    record: dict = field(default_factory=dict)
    exercises: dict[str, Judged] = field(default_factory=dict)


def graded(course: Course, student: str, assignment: str) -> Graded:
    """What was graded of a submission, by this judge. A file is read once."""
    path = course.notebook("autograded", student, assignment)
    try:
        about = path.stat()
    except OSError:
        return Graded()
    return _graded(path, about.st_ino, about.st_size, about.st_mtime_ns)


@functools.lru_cache(20_000)
def _graded(path: Path, *changed: int) -> Graded:
    """changed: numbers that differ where the file was written anew."""
    try:
        notebook = json.loads(path.read_bytes())
        judged, record = judged_in(notebook), notebook["metadata"].get(NAME)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Graded()
    return Graded(record if isinstance(record, dict) else {}, judged)


def judged_in(notebook: dict) -> dict[str, Judged]:
    """The exercises of a notebook that the judge has filled."""
    answers = {name: "".join(cell["source"]) for name, cell in answers_in(notebook).items()}
    return {
        name: Judged(verdict, points_in(cell), answers.get(name, ""))
        for name, _, cell in checks_in(notebook)
        if isinstance(verdict := cell["metadata"].get("verdict"), dict)
    }


def points_in(cell: dict) -> float:
    """The points that `judging` wrote into a check cell: its last output."""
    return float("".join(cell["outputs"][-1]["data"]["text/plain"]))


def is_stale(course: Course, student: str, assignment: str) -> bool:
    """Whether other answers were collected than those that were graded. False if nothing is known about either."""
    record, path = graded(course, student, assignment).record, submitted_notebook(course, student, assignment)
    return bool(record.get("submitted")) and path.is_file() and not is_about(record, path)


def is_about(record: dict, path: Path) -> bool:
    """Whether a record is about this file: the same one, or one with the same text in its cells."""
    if file_hash(path) == record["submitted"]:
        return True
    try:
        return hash_of(cells_of(read_bounded(path))) == record.get("answers")
    except (ValueError, OSError):
        return False


def submitted_notebook(course: Course, student: str, assignment: str) -> Path:
    """The submitted notebook: the one with the assignment's name, or the only one there is."""
    expected = course.notebook("submitted", student, assignment)
    there = sorted(expected.parent.glob("*.ipynb"))
    return there[0] if len(there) == 1 else expected


def _hash_files(files: list[Path]) -> str:
    return hash_of([(path.name, file_hash(path)) for path in sorted(files)])
