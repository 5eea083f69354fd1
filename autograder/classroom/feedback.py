"""Writes the pages of feedback/ from what was graded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import GetGrades, NbGraderPreprocessor

from ..text import visible
from .course import Course, word, write_atomically
from .duedates import spoken
from .gradebook import NOT_IN_GRADEBOOK, graded_folders, open_gradebook, resources
from .nbgrader_plugins import FeedbackExporter
from .pages import LessonScore, overview
from .standing import Standing, Submission, standing

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


def feedback(course: Course) -> FeedbackReport:
    """Write a page for every graded submission to feedback/, and an overview for every student."""
    graded = graded_folders(course)
    with open_gradebook(course) as gradebook:
        return _pages(course, graded, gradebook)


def _pages(course: Course, graded: list[Submission], gradebook: Gradebook) -> FeedbackReport:
    exporter = FeedbackExporter(config=course.config)
    exporter.optimistic_validation = True  # once a page, not after each of nbconvert's steps, most of which are off
    exporter.register_preprocessor(_Grades(gradebook))
    now = standing(course)
    report = FeedbackReport([], [])
    totals: dict[str, dict[str, tuple[float, float]]] = {}
    for student, assignment in graded:
        source = course.notebook("autograded", student, assignment)
        target = course.notebook("feedback", student, assignment, ".html")
        try:
            names = resources(course, student, assignment)
            names["nbgrader"]["notices"] = _notices(now, student, assignment)
            html, found = exporter.from_filename(str(source), resources=names)
            write_atomically(target, html.encode())
        except MissingEntry:
            report.problems.append(f"{word(student)} {word(assignment)}: no page: {NOT_IN_GRADEBOOK}")
            continue
        except Exception as error:
            report.problems.append(
                f"{word(student)} {word(assignment)}: no page: {type(error).__name__}: {visible(error, 300)}"
            )
            continue
        report.pages.append(target)
        grades = found["nbgrader"]
        totals.setdefault(student, {})[assignment] = grades["score"], grades["max_score"]
    for student, scores in totals.items():
        html = overview(student, _lessons(course, now, scores))
        write_atomically(course.root / "feedback" / student / "index.html", html.encode())
    return report


class _Grades(GetGrades):
    """nbgrader's GetGrades in one gradebook. It would open one for each page, and prepare every query anew."""

    def __init__(self, gradebook: Gradebook) -> None:
        super().__init__(enabled=True)
        self.gradebook = gradebook

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        names = resources["nbgrader"]
        self.notebook_id, self.assignment_id, self.student_id = (
            names[key] for key in ("notebook", "assignment", "student")
        )
        nb, resources = NbGraderPreprocessor.preprocess(self, nb, resources)
        found = self.gradebook.find_submission_notebook(self.notebook_id, self.assignment_id, self.student_id)
        penalty = found.late_submission_penalty or 0
        names |= {"score": found.score - penalty, "max_score": found.max_score, "late_penalty": penalty}
        return nb, resources


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
