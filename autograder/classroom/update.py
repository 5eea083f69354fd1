"""Brings the lessons of today into a course that was made with older ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .course import Course


@dataclass
class UpdateReport:
    """The lessons that are other ones now."""

    lessons: list[str]
    status: int = 0

    def print(self, out: Callable[[str], None] = print) -> None:
        out(f"{', '.join(self.lessons) or 'no lesson'}: brought into release/")
        if self.lessons:
            out("`autograder grade` judges what its new exercises and points concern, and shows other points first")


def update(course: Course) -> UpdateReport:
    """Write source/ and release/ of a course anew. Grades stay until the next grading. Raises CourseError."""
    outdated = course.outdated()
    course.create()
    course.write_lessons()
    return UpdateReport(outdated)
