"""Writes the grades as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from nbgrader.api import SubmittedAssignment, SubmittedNotebook
from sqlalchemy.orm import selectinload

from ...text import visible
from ..course import Course, CourseError, write_atomically
from ..grading.gradebook import NOT_IN_GRADEBOOK, graded_folders, open_gradebook
from ..grading.record import graded
from ..standing import Standing, standing
from ..submission import exercise_of


@dataclass
class ExportReport:
    grades: Path
    exercises: Path
    students: int
    status: int = 0

    def print(self, out: Callable[[str], None] = print) -> None:
        out(f"{self.students} students: totals in {self.grades}, every exercise in {self.exercises}")


def export(course: Course, folder: str | Path | None = None, now: Standing | None = None) -> ExportReport:
    """Write grades.csv (a line per student) and exercises.csv (a line per exercise) beside the gradebook.

    Everybody on the roster has a line, and everybody of whom something came, understood or not. `score` is what is
    left after penalties, `points` what could be had: both count what is assigned, with the weights of course.toml.
    The column `notes` says what was late, not understood, not graded since, or waits for a person.
    `folder` is another place for them; `now` is how the class stands, where that is known already. Text that a
    spreadsheet would take for a formula gets an apostrophe, also after a semicolon, where some begin a new cell.
    """
    folder = Path(folder or course.root)
    graded_folders(course)
    with open_gradebook(course) as gradebook:
        now = now or standing(course, gradebook)
        grades = selectinload(SubmittedAssignment.notebooks).selectinload(SubmittedNotebook.grades)
        submissions = gradebook.db.query(SubmittedAssignment).options(grades)
        there = {(one.student_id, one.assignment.name): one for one in submissions}
        if not gradebook.students:
            raise CourseError(f"{course.root}: its graded students are {NOT_IN_GRADEBOOK}")
        counts = {a: now.rules.weight(a, course.points(a)) for a in now.assigned}
        totals, details = [], []
        for person in now.people:
            scores, total = [], 0.0
            for assignment in now.assigned:
                if not (submission := there.get((person.id, assignment))):
                    scores.append("")
                    continue
                scores.append(round(submission.score - (submission.late_submission_penalty or 0.0), 6))
                total += scores[-1] * counts[assignment] / (course.points(assignment) or 1.0)
                details += _exercise_lines(course, submission, person.id, assignment)
            who = [person.id, person.name, person.email, person.section] if now.has_roster else [person.id]
            late = [a for a in now.assigned if (person.id, a) in now.late]
            notes = "; ".join(now.notes(person.id))
            totals.append([*who, *scores, round(total, 6), sum(counts.values()), " ".join(late), notes])
    report = ExportReport(folder / "grades.csv", folder / "exercises.csv", len(now.people))
    who = ["student", "name", "email", "section"] if now.has_roster else ["student"]
    write_csv(report.grades, [*who, *now.assigned, "score", "points", "late", "notes"], totals)
    header = "student assignment exercise score points passed diagnosis reason needs_review handed_in"
    write_csv(report.exercises, header.split(), details)
    return report


def _exercise_lines(
    course: Course, submission: SubmittedAssignment, student: str, assignment: str
) -> Iterator[list]:
    exercises = graded(course, student, assignment).exercises
    order = list(exercises)
    for notebook in submission.notebooks:
        names = {exercise_of(mark.name): mark for mark in notebook.grades}
        for name in sorted(names, key=lambda name: order.index(name) if name in order else -1):
            mark, verdict = names[name], exercises[name].verdict if name in exercises else {}
            yield [
                student,
                assignment,
                name,
                mark.score,
                mark.max_score,
                int(bool(verdict.get("passed"))),
                verdict.get("diagnosis") or "",
                "" if verdict.get("passed") else verdict.get("message", ""),
                int(mark.needs_manual_grade),
                submission.timestamp.replace(tzinfo=UTC).isoformat() if submission.timestamp else "",
            ]


def write_csv(path: Path, header: list[str], lines: list[list]) -> None:
    """Write lines for a spreadsheet: text that it would take for a formula gets an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_csv_cell(value) for value in line] for line in lines)
    write_atomically(path, text.getvalue().encode("utf-8-sig"))


_SIGN = "=+@＝＋－＠-"
# Excel splits at ; where the comma is the decimal sign, and takes quotation marks inside a line for text.
_NEXT_CELL = re.compile(rf"""([;\t])(?=[\s"'“”„]*[{_SIGN}])""")


def _csv_cell(value: object) -> object:
    """A cell in which no spreadsheet finds a formula: neither at its beginning nor after a semicolon."""
    if isinstance(value, int | float):
        return value
    text = _NEXT_CELL.sub(r"\1'", " ".join(visible(value, 1000).split()))
    return f"'{text}" if text.startswith(tuple(_SIGN)) else text
