"""Writes the pages of feedback/ from what was graded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import MissingEntry
from nbgrader.preprocessors import GetGrades

from ..text import visible
from .course import Course, word, write_atomically
from .gradebook import NOT_IN_GRADEBOOK, graded_folders, resources
from .nbgrader_plugins import FeedbackExporter
from .pages import overview
from .standing import standing

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
    exporter = FeedbackExporter(config=course.config)
    exporter.register_preprocessor(GetGrades, enabled=True)
    now = standing(course)
    report = FeedbackReport([], [])
    totals: dict[str, list[tuple[str, float, float]]] = {}
    for student, assignment in graded:
        source = course.notebook("autograded", student, assignment)
        target = course.notebook("feedback", student, assignment, ".html")
        try:
            names = resources(course, student, assignment)
            names["nbgrader"]["notices"] = [
                said for said, group in ((LATE, now.late), (STALE, now.stale)) if (student, assignment) in group
            ]
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
        totals.setdefault(student, []).append((assignment, grades["score"], grades["max_score"]))
    for student, lessons in totals.items():
        write_atomically(
            course.root / "feedback" / student / "index.html", overview(student, lessons).encode()
        )
    return report
