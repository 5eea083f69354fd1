"""How a class stands: who is in it, what is assigned, and what is late, missing, not graded or not understood."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from ..text import visible
from .course import HELD, Course
from .duedates import Rules, spoken
from .files import read_timestamp
from .grading.gradebook import Marks, marks_in, open_gradebook
from .grading.gradebook import waiting as waiting_in
from .grading.record import is_stale
from .intake.people import ClassList, Person

Submission = tuple[str, str]  # student, assignment


@dataclass(frozen=True)
class Standing:
    """The people of a course in the order of the roster, then by id; and sets of (student, assignment).

    `assigned` are the assignments that count: what course.toml says, or what anybody handed in. `late` were handed
    in late, by the due date or by the system's mark; `late_by` says how late, where that is known. `ungraded` were
    collected and not graded, `stale` were collected anew after they were graded. `trouble` has lines per student.
    `waiting` says why a submission waits for a person, `marks` what the gradebook has of it.
    """

    people: list[Person]
    assigned: list[str]
    late: set[Submission]
    missing: set[Submission]
    ungraded: set[Submission]
    stale: set[Submission]
    trouble: dict[str, list[str]]
    has_roster: bool
    late_by: dict[Submission, timedelta]
    rules: Rules
    held: set[Submission]
    waiting: dict[Submission, list[str]]
    marks: dict[Submission, Marks]

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


def standing(course: Course) -> Standing:
    """How the class stands now, from the folders, the gradebook and what collecting remembered."""
    classlist = ClassList(course)
    submitted, graded = set(course.handed_in()), set(course.handed_in("autograded"))
    there = submitted | graded
    listed = classlist.roster.people if classlist.roster else []
    ids = {person.id for person in listed}
    others = sorted({student for student, _ in there} | set(classlist.trouble))
    names = {student: about.get("name", "") for student, about in classlist.people.items()}
    people = listed + [Person(student, names.get(student, "")) for student in others if student not in ids]
    rules = course.rules()
    assigned = rules.assigned
    if assigned is None:
        assigned = [a for a in course.released if any(a == assignment for _, assignment in there)]
    late_by = {
        (student, a): late
        for student, a in there
        if (late := rules.late_by(student, a, read_timestamp(course.stamp(student, a))))
    }
    waiting, marks = {}, {}
    if graded:
        with open_gradebook(course) as gradebook:
            waiting, marks = waiting_in(course, gradebook), marks_in(gradebook)
    return Standing(
        people,
        assigned,
        late={s for s in there if classlist.is_late(*s)} | set(late_by),
        missing={(p.id, a) for p in people for a in assigned} - there,
        ungraded={s for s in submitted - graded if s[1] in course.released},
        stale={s for s in submitted & graded if is_stale(course, *s)},
        trouble=classlist.trouble,
        has_roster=bool(listed),
        late_by=late_by,
        rules=rules,
        held=set(course.handed_in(HELD)),
        waiting=waiting,
        marks=marks,
    )
