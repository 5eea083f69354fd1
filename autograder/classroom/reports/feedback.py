"""Writes the pages of feedback/ from what was graded."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import astuple, dataclass
from datetime import timedelta
from pathlib import Path

from nbgrader.api import Gradebook, SubmittedNotebook
from sqlalchemy.orm import selectinload

from ...text import visible
from .. import templates
from ..course import Course, word, write_atomically
from ..duedates import spoken
from ..grading import nbgrader_plugins
from ..grading.gradebook import NOT_IN_GRADEBOOK, graded_folders, open_gradebook
from ..grading.nbgrader_plugins import Marks, student_page
from ..grading.record import file_hash, hash_of
from ..standing import Standing, Submission, standing
from . import pages
from .pages import LessonScore, overview

LATE = "It was handed in late."
STALE = "Something newer was handed in after this was graded."


@dataclass
class FeedbackReport:
    pages: list[Path]
    problems: list[str]

    @property
    def status(self) -> int:
        return int(bool(self.problems))

    def print(self, out: Callable[[str], None] = print) -> None:
        for problem in self.problems:
            out(problem)
        out(self.where)

    @property
    def where(self) -> str:
        """One line: how many pages there are, and where."""
        return f"{len(self.pages)} feedback pages" + (f" in {self.pages[0].parents[2]}" if self.pages else "")


def feedback(course: Course, now: Standing | None = None) -> FeedbackReport:
    """Write a page for every graded submission to feedback/, and an overview for every student.

    now: how the class stands, where that is known already.
    """
    graded = graded_folders(course)
    with open_gradebook(course) as gradebook:
        now, marks = now or standing(course, gradebook), _marks(gradebook)
    report = FeedbackReport([], [])
    totals: dict[str, dict[str, tuple[float, float]]] = {}
    for student, assignment in graded:
        source = course.notebook("autograded", student, assignment)
        target = course.notebook("feedback", student, assignment, ".html")
        mark, notices = marks.get((student, assignment)), _notices(now, student, assignment)
        if mark is None:
            report.problems.append(f"{word(student)} {word(assignment)}: no page: {NOT_IN_GRADEBOOK}")
            continue
        try:
            content = source.read_bytes()
            made_of = hash_of([_program(), content.decode(), student, assignment, astuple(mark), notices])
            if not _says(target, made_of):
                html = student_page(json.loads(content), student, assignment, mark, notices)
                write_atomically(target, html.replace("<head>", f"<head><!-- {made_of} -->", 1).encode())
        except Exception as error:
            report.problems.append(
                f"{word(student)} {word(assignment)}: no page: {type(error).__name__}: {visible(error, 300)}"
            )
            continue
        report.pages.append(target)
        totals.setdefault(student, {})[assignment] = mark.score, mark.points
    for student, scores in totals.items():
        html = overview(student, _lessons(course, now, scores))
        write_atomically(course.root / "feedback" / student / "index.html", html.encode())
    return report


def _says(page: Path, made_of: str) -> bool:
    """Whether there is a page that was made of the same."""
    try:
        with page.open(errors="replace") as file:
            return made_of in file.read(400)
    except OSError:
        return False


@functools.cache
def _program() -> str:
    """Changes with what makes a page."""
    files = [Path(module.__file__) for module in (nbgrader_plugins, pages)]
    files += sorted(path for path in Path(templates.__file__).parent.iterdir() if path.is_file())
    return hash_of([file_hash(path) for path in files])


def _marks(gradebook: Gradebook) -> dict[Submission, Marks]:
    """(student, assignment) -> what the gradebook says. One query: nbgrader's GetGrades asks for each cell."""
    found = {}
    loaded = (selectinload(SubmittedNotebook.grades), selectinload(SubmittedNotebook.comments))
    for notebook in gradebook.db.query(SubmittedNotebook).options(*loaded):
        submission, penalty = notebook.assignment, notebook.late_submission_penalty or 0.0
        found[submission.student_id, submission.assignment.name] = Marks(
            notebook.score - penalty,
            notebook.max_score,
            penalty,
            {grade.cell.name: (grade.score, grade.max_score) for grade in notebook.grades},
            {comment.cell.name: comment.comment for comment in notebook.comments if comment.comment},
        )
    return found


def _notices(now: Standing, student: str, assignment: str) -> list[str]:
    """What a student's page says beside the grade."""
    late = now.late_by.get((student, assignment))
    said = []
    if late:
        due = now.rules.due(assignment) + (now.rules.extension(student, assignment) or timedelta())
        said.append(f"It was handed in {spoken(late)} late. It was due on {due.astimezone():%d %B %Y, %H:%M %Z}.")
    elif (student, assignment) in now.late:
        said.append(LATE)
    return said + [STALE] * ((student, assignment) in now.stale)


def _lessons(course: Course, now: Standing, scores: dict[str, tuple[float, float]]) -> list[LessonScore]:
    """The lines of a student's overview: all that is assigned, and what else has a page."""
    lines = []
    for assignment in dict.fromkeys([*now.assigned, *scores]):
        score, points = scores.get(assignment, (0.0, course.points(assignment)))
        counts = now.rules.weight(assignment, points) if assignment in now.assigned else 0.0
        lines.append(LessonScore(assignment, score, points, counts, assignment in scores))
    return lines
