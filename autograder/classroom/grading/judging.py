"""Judges one submission: reads it, asks the judge about each answer, and writes the verdicts into the notebook.

Nothing of a student's is executed here, and nobody else's files are touched.

A record says what the grade rests on: the file, the answers in it, the exercises, the judge. The grade is kept while
all are the same. The record is in the metadata of the autograded notebook, which is written last: where it is, the
grade is in the database, too. A run that was killed goes on from there.
"""

import copy
import functools
import json
import re
import time
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import NamedTuple, Self

from ...answer import from_notebook
from ...text import visible
from ...verdict import Finding, Slug, Verdict
from ...versions import stack
from ..course import Course, file_hash, hash_of, word
from ..submission import (
    REVIEW,
    Submission,
    answers_in,
    cells_of,
    checks_in,
    clean_notebook,
    read_bounded,
    read_submission,
)

NAME = "autograder"  # of the record in the notebook's metadata
_NOT_THE_JUDGE = {"classroom", "exercises", "cli.py", "lessons.py", "notebook.py", "selftest.py", "session.py",
                  "watch.py", "yours.py"}  # fmt: skip
MAX_PANEL = 200_000


@dataclass
class Row:
    """The grade of one submission. `notes` are what a person should know; `needs_review` says they must.

    `notebook` is what goes to autograded/: the student's answers, the verdicts as outputs. `failed` says that the
    grader failed, and not the student; `kept` that the grade is of an earlier run.
    """

    student: str
    assignment: str
    notebook: dict | None = field(default=None, repr=False)
    score: float = 0.0
    points: float = 0.0
    notes: list[str] = field(default_factory=list)
    needs_review: bool = False
    failed: bool = False
    kept: bool = False
    seconds: float = 0.0

    @property
    def names(self) -> tuple[str, str]:
        return self.student, self.assignment

    @classmethod
    def from_record(cls, student: str, assignment: str, record: dict) -> Self:
        """The row of an earlier run, without its notebook."""
        fields = {name: record[name] for name in ("score", "points", "seconds")}
        return cls(student, assignment, notes=list(record["notes"]), kept=True, **fields)

    def fail(self, problem: str | Exception) -> Self:
        """Note what kept the grader from grading it."""
        self.notes.append(problem if isinstance(problem, str) else grader_error(problem))
        self.needs_review = self.failed = True
        return self

    def record(self) -> dict:
        """What `from_record` needs."""
        return {"score": self.score, "points": self.points, "notes": self.notes, "seconds": round(self.seconds, 3)}

    def __str__(self) -> str:
        grade = f"{self.score:g} / {self.points:g}"
        state = "needs review" if self.needs_review else "graded"
        notes = f": {' '.join(visible('; '.join(self.notes), 300).split())}" if self.notes else ""
        return f"{word(self.student):<24} {word(self.assignment):<20} {grade:>9}  {state}{notes}"


def judge_submission(course: Course, student: str, assignment: str, judge) -> Row:
    """The grade of one submission. Never raises: what goes wrong becomes a row that needs review."""
    row, began = Row(student, assignment), time.perf_counter()
    try:
        _write_answers(row, read(course, student, assignment), course.released[assignment], judge)
    except Exception as error:
        row.fail(error)
    row.seconds = time.perf_counter() - began
    return row


def read(course: Course, student: str, assignment: str) -> Submission:
    """A submission, ready to be judged. LookupError for one of no assignment of the course."""
    from ...exercises import EXERCISES

    released = course.released.get(assignment)
    if released is None:
        raise LookupError(f"no assignment of this course; there are: {', '.join(course.released)}")
    path = submitted_notebook(course, student, assignment)
    submitted = file_hash(path)  # before it is read: whatever is collected meanwhile is something newer
    submission = read_submission(path, released)
    lesson = [EXERCISES[check.exercise] for check in checks_in(released) if check.exercise in EXERCISES]
    if submission.foreign and not any(from_notebook({"cells": submission.cells}, one) for one in lesson):
        problem = f"the notebook is of another lesson: it has the answers {', '.join(submission.foreign[:5])}"
        submission = Submission(copy.deepcopy(released), problem=visible(problem, 300))
    answers = hash_of(submission.cells) if not submission.problem else ""
    submission.notebook["metadata"][NAME] = {"submitted": submitted, "answers": answers}
    return submission


def ask(judge, exercise, points: float, cells: list[dict]) -> tuple[Verdict, str]:
    """A judge's verdict on the answer in some cells, and the source that it is about. Never raises."""
    source = ""
    try:
        source = from_notebook({"cells": cells}, exercise) or ""
        verdict = judge.judge(exercise.name, source)
        # What a compiler refuses as a whole says nothing of a single blank: a right one had a ✗, too.
        if verdict.diagnosis == Slug.COMPILE_ERROR and not any(verdict.blanks.values()):
            verdict = replace(verdict, blank_findings={})
    except Exception as error:
        verdict = _zero(exercise.name, points, Slug.GRADER_ERROR, grader_error(error))
    return verdict, source


def _write_answers(row: Row, submission: Submission, released: dict, judge) -> None:
    from ...exercises import EXERCISES

    record = submission.notebook["metadata"][NAME]
    hashes = record["judged"] = {}  # a score that a person gave is about one of these answers
    row.notes += [submission.problem] * bool(submission.problem)
    row.needs_review = bool(submission.problem)
    for exercise, points, cell in checks_in(submission.notebook):
        if submission.problem:
            hashes[exercise] = record["submitted"]
            verdict = _zero(exercise, points, Slug.NO_NOTEBOOK, submission.problem)
        else:
            about = EXERCISES[exercise]
            verdict, source = ask(judge, about, points, submission.cells)
            # Show what was judged where the student wrote the function in another cell.
            starter, answer = (answers_in(nb).get(exercise, {"source": ""}) for nb in (released, submission.notebook))
            defines = re.search(rf"\bdef\s+{about.entry}\b", answer["source"])
            elsewhere = answer["source"] == starter["source"] or not defines
            if elsewhere and source and source != from_notebook(released, about):
                answer["source"] = source
            hashes[exercise] = hash_of(source)
            count, doubt = submission.cells_of_answers.get(exercise, 1), ""
            if count == 0 and not source:
                doubt = f"there is no answer cell {exercise}, nor its function in another cell"
            elif count > 1 and not verdict.passed:
                doubt = f"the answer cell {exercise} is there {count} times"
            if doubt:
                row.notes.append(doubt)
                cell["metadata"][REVIEW], row.needs_review = doubt, True
        earned = min(max(verdict.score / verdict.points, 0.0), 1.0) * points
        _write_verdict(cell, verdict, earned)
        row.points += points
        row.score += earned
        if verdict.diagnosis == Slug.GRADER_ERROR:
            row.fail(f"{exercise}: {verdict.message}")
    row.notebook = clean_notebook(submission.notebook)


def _zero(exercise: str, points: float, slug: str, message: str) -> Verdict:
    return Verdict(exercise, False, 0.0, points, "", Finding(slug, f"{message[:1].upper()}{message[1:]}."))


def grader_error(error: Exception) -> str:
    return f"an error of the grader, not of the student: {type(error).__name__}: {visible(error, 300)}"


def _write_verdict(cell: dict, verdict: Verdict, earned: float) -> None:
    """Put a verdict into the graded cell: as metadata, and as outputs. nbgrader reads the points from the last one."""
    cell["metadata"]["verdict"] = verdict.to_json()
    html, text = verdict.to_html(), verdict.to_text()
    html = html if len(html) <= MAX_PANEL else f"<pre>{escape(text[:MAX_PANEL])}</pre>"  # cut, its tags would stay open
    panel = {"text/plain": text, "text/html": visible(html, len(html))}
    points = {"text/plain": repr(float(earned))}
    cell["outputs"] = [
        {"output_type": "display_data", "metadata": {}, "data": panel},
        {"output_type": "execute_result", "metadata": {}, "data": points, "execution_count": 1},
    ]


def ungraded(course: Course, row: Row) -> dict:
    """The released notebook, with the error that kept a submission from being graded in every check cell."""
    notebook = copy.deepcopy(course.released[row.assignment])
    for exercise, points, cell in checks_in(notebook):
        _write_verdict(cell, _zero(exercise, points, Slug.GRADER_ERROR, row.notes[-1]), 0.0)
    return notebook


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
    return Place(judge_version(), _backend_and_card()[0])


@functools.cache
def judge_version() -> str:
    """Changes with the judge's source, with the packages that a verdict depends on, and with this card."""
    return hash_of([_hash_files(judge_files()), stack(), _backend_and_card()[1]])


def judge_files() -> list[Path]:
    """The judge's source, but for the exercises, which have versions of their own."""
    package = Path(__file__).parents[2]
    beside = package.parent / "workshop"
    files = [f for f in package.rglob("*.py") if f.relative_to(package).parts[0] not in _NOT_THE_JUDGE]
    return [*files, *beside.rglob("*.py"), beside / "advice.toml"]


@functools.cache
def _backend_and_card() -> tuple[str, str]:
    """As torch says. One without cards is not asked: its import takes longer than a run where nothing is new."""
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
