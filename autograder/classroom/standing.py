"""How a class stands: who is in it, what is assigned, and what is late, missing, not graded or not understood."""

from collections.abc import Iterable, Iterator

from ..text import visible
from .course import HELD, Course, read_timestamp
from .duedates import spoken
from .grading.gradebook import Marks, marks_in, open_gradebook, waiting
from .grading.record import is_stale
from .intake.people import ClassList, Person

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
