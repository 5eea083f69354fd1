"""One comment to all whose answer has one diagnosis: `autograder comment EXERCISE DIAGNOSIS "text"`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nbgrader.api import Comment

from ..course import Course, CourseError, word
from ..grading.gradebook import graded_folders, open_gradebook
from .report import verdicts


@dataclass
class CommentReport:
    """Who got the comment, and who has another one that somebody wrote."""

    given: list[str]
    kept: list[str]
    status: int = 0

    def print(self, out: Callable[[str], None] = print) -> None:
        if self.kept:
            out(f"have another comment, which stays (--replace takes its place): {', '.join(map(word, self.kept))}")
        out(f"{len(self.given)} comments: {', '.join(map(word, self.given))}")
        out("they are on the pages that `autograder feedback` writes next")


def comment(course: Course, exercise: str, diagnosis: str, text: str, replace: bool = False) -> CommentReport:
    """Write `text` to each student whose answer to `exercise` has this diagnosis now; "" takes comments away.

    A comment that says something else stays unless `replace`. CourseError where nobody has the diagnosis.
    """
    found, others = {}, set()
    for student, assignment in graded_folders(course):
        for name, verdict, _ in verdicts(course, student, assignment):
            if name == exercise and not verdict.get("passed"):
                others.add(str(verdict.get("diagnosis")))
                if verdict.get("diagnosis") == diagnosis:
                    found[student, assignment] = name
    if not found:
        there = ", ".join(sorted(others)) or "no wrong answers"
        raise CourseError(f"no answer to {word(exercise)} has the diagnosis {word(diagnosis)}; there are: {there}")
    report = CommentReport([], [])
    with open_gradebook(course) as gradebook:
        for row in gradebook.db.query(Comment).all():
            submission = row.notebook.assignment
            names = submission.student_id, submission.assignment.name
            if found.get(names) != row.cell.name:
                continue
            if row.manual_comment and row.manual_comment != text and not replace:
                report.kept.append(names[0])
            else:
                row.manual_comment = text or None
                report.given.append(names[0])
        gradebook.db.commit()
    return report
