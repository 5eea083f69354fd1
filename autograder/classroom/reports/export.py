"""Writes the grades as CSV."""

import re
from collections.abc import Iterable
from pathlib import Path

from ...text import visible
from ..course import Course, CourseError, Outcome, write_atomically
from ..grading.gradebook import NOT_IN_GRADEBOOK, graded_folders
from ..grading.record import graded
from ..intake.people import Table
from ..standing import Standing


def export(course: Course, folder: str | Path | None = None, now: Standing | None = None) -> Outcome:
    """Write `grades`, grades.csv with a line per student, and `exercises`, exercises.csv with a line per exercise.

    Everybody on the roster has a line, and everybody of whom something came, understood or not. `score` is what is
    left after penalties, `points` what could be had: both count what is assigned, with the weights of course.toml.
    The column `notes` says what was late, not understood, not graded since, or waits for a person.
    `folder` is another place for them than the course; `now` is how the class stands, where that is known already.
    Text that a spreadsheet would take for a formula gets an apostrophe, also after a semicolon, where some begin a new
    cell.
    """
    folder = Path(folder or course.root)
    graded_folders(course)
    now = now or Standing(course)
    if not now.marks:
        raise CourseError(f"{course.root}: its graded students are {NOT_IN_GRADEBOOK}")
    totals, details = [], []
    for person in now.people:
        marks = {a: now.marks[person.id, a] for a in now.assigned if (person.id, a) in now.marks}
        total = sum((mark.score * now.counts[a] / (course.points(a) or 1.0) for a, mark in marks.items()), 0.0)
        for assignment, mark in marks.items():
            exercises = graded(course, person.id, assignment).exercises
            order, came = list(exercises), mark.came.isoformat() if mark.came else ""
            for name in sorted(mark.scores, key=lambda name: order.index(name) if name in order else -1):
                verdict = exercises[name].verdict if name in exercises else {}
                score, points, waits, _ = mark.scores[name]
                reason = "" if verdict.get("passed") else verdict.get("message", "")
                judged = [int(bool(verdict.get("passed"))), verdict.get("diagnosis") or "", reason]
                details.append([person.id, assignment, name, score, points, *judged, int(waits), came])
        who = [person.id, person.name, person.email, person.section] if now.has_roster else [person.id]
        late = [a for a in now.assigned if (person.id, a) in now.late]
        scores = [marks[a].score if a in marks else "" for a in now.assigned]
        what = [round(total, 6), sum(now.counts.values()), " ".join(late), "; ".join(now.notes(person.id))]
        totals.append([*who, *scores, *what])
    files = {"grades": folder / "grades.csv", "exercises": folder / "exercises.csv"}
    who = ["student", "name", "email", "section"] if now.has_roster else ["student"]
    write_csv(files["grades"], [*who, *now.assigned, "score", "points", "late", "notes"], totals)
    header = "student assignment exercise score points passed diagnosis reason needs_review handed_in"
    write_csv(files["exercises"], header.split(), details)
    said = f"{len(now.people)} students: totals in {files['grades']}, every exercise in {files['exercises']}"
    return Outcome([said], files=files)


def write_csv(path: Path, header: Iterable[str], lines: Iterable[Iterable]) -> None:
    """Write lines for a spreadsheet: text that it would take for a formula gets an apostrophe."""
    cells = [[_csv_cell(value) for value in line] for line in lines]
    write_atomically(path, Table(path, [list(header), *cells], encoding="utf-8-sig", newline="\n").content())


_SIGN = "=+@＝＋－＠-"
# Excel splits at ; where the comma is the decimal sign, and takes quotation marks inside a line for text.
_NEXT_CELL = re.compile(rf"""([;\t])(?=[\s"'“”„]*[{_SIGN}])""")


def _csv_cell(value: object) -> object:
    """A cell in which no spreadsheet finds a formula: neither at its beginning nor after a semicolon."""
    if isinstance(value, int | float):
        return value
    text = _NEXT_CELL.sub(r"\1'", " ".join(visible(value, 1000).split()))
    return f"'{text}" if text.startswith(tuple(_SIGN)) else text
