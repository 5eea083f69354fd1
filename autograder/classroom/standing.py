"""How a class stands: who is in it, what is assigned, late, missing, not graded or not understood; also as CSV."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..text import visible
from .course import HELD, Course, CourseError, Outcome, read_timestamp, write_atomically
from .duedates import spoken
from .grading.gradebook import NOT_IN_GRADEBOOK, Marks, graded_folders, marks_in, open_gradebook, waiting
from .grading.judging import graded, is_stale
from .intake.people import ClassList, Person, Table

Submission = tuple[str, str]  # student, assignment


class Standing:
    """A course as it is now, by its folders, its gradebook and what collecting remembered: sets of submissions.

    `people` are in the order of the roster, then by id. `assigned` are the assignments that count: what course.toml
    says, or what anybody handed in; `counts` says as how many points. `late` were handed in late, by the due date or by
    the system's mark; `late_by` says how late, where that is known. `ungraded` were collected and not graded, `stale`
    were collected anew after they were graded. `trouble` has lines per student. `waiting` says why a submission waits
    for a person, `marks` what the gradebook has of it.
    """

    def __init__(self, course: Course) -> None:
        classlist = ClassList(course)
        submitted, graded = set(course.handed_in()), set(course.handed_in("autograded"))
        there = submitted | graded
        listed = classlist.roster.people if classlist.roster else []
        others = {student for student, _ in there} | set(classlist.trouble)
        unlisted = sorted(others - {person.id for person in listed})
        self.people = listed + [Person(who, classlist.people.get(who, {}).get("name", "")) for who in unlisted]
        self.has_roster = bool(listed)
        self.rules = course.rules()
        self.assigned: list[str] = self.rules.assigned
        if self.assigned is None:
            self.assigned = [a for a in course.released if any(a == assignment for _, assignment in there)]
        self.counts = {a: self.rules.weight(a, course.points(a)) for a in self.assigned}
        came = {names: read_timestamp(course.stamp(*names)) for names in there}
        self.late_by = {names: late for names in there if (late := self.rules.late_by(*names, came[names]))}
        self.late = (there & classlist.late) | set(self.late_by)
        self.missing = {(person.id, a) for person in self.people for a in self.assigned} - there
        self.ungraded = {names for names in submitted - graded if names[1] in course.released}
        self.stale = {names for names in submitted & graded if is_stale(course, *names)}
        self.held = set(course.handed_in(HELD))
        self.trouble = classlist.trouble
        self.marks: dict[Submission, Marks] = {}
        if graded:
            with open_gradebook(course) as gradebook:
                self.marks = marks_in(gradebook)
        self.waiting = waiting(course, self.marks)

    def with_marks(self, assignments: Iterable[str]) -> Iterator[tuple[Person, str, Marks]]:
        """What is graded of some assignments, person by person."""
        for person in self.people:
            for assignment in assignments:
                if marks := self.marks.get((person.id, assignment)):
                    yield person, assignment, marks

    def not_sure(self, names: Submission) -> str:
        """Why a score may be another one soon, so that no LMS should get it; "" if it may."""
        if names in self.waiting:
            return f"waits for a decision of yours: {visible('; '.join(self.waiting[names]), 300)}"
        return "something newer was collected; grade it first" if names in self.stale else ""

    def notes(self, student: str) -> list[str]:
        """What is to be known about the student's row, but for the grades."""
        said = [
            f"{what}: {', '.join(names)}"
            for what, group in (
                ("waits for a decision of yours", self.waiting),
                ("collected anew after it was graded", self.stale),
                ("not graded", self.ungraded),
                ("would get other points today (see changes.csv)", self.held),
            )
            if (names := [a for a in self.assigned if (student, a) in group])
        ]
        late = [(a, self.late_by[student, a]) for a in self.assigned if (student, a) in self.late_by]
        said += [f"{assignment}: {spoken(how)} late" for assignment, how in late]
        return said + [f"not understood: {line}" for line in self.trouble.get(student, [])]


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
