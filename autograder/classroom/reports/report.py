"""One page about the class for its instructor: how it stands, what was hard, who waits for a decision."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from urllib.parse import quote

from ...text import visible
from ...verdict import GRADER_ERROR
from ..course import Course, Outcome, word
from ..grading.gradebook import graded_folders
from ..grading.record import Judged, graded
from ..standing import Standing, Submission
from ..submission import NO_NOTEBOOK, answers_in
from ..templates import document, write_page
from .export import write_csv
from .similar import Pair, known_answers, similar

NOT_ATTEMPTED = "not-attempted"
SAMPLES, LISTED, PAIRS = 2, 5, 20  # answers shown per misconception; misconceptions per exercise; similar answers
NAMED = 12  # people that a line names
MAX_SAMPLE = 4000


@dataclass
class _Exercise:
    """Who tried an exercise of an assignment (student -> what was judged), and of whom nothing came but the starter."""

    tried: dict[str, Judged] = field(default_factory=dict)
    not_started: list[str] = field(default_factory=list)

    def add(self, student: str, judged: Judged) -> None:
        slug = judged.verdict.get("diagnosis")
        if slug == NOT_ATTEMPTED:
            self.not_started.append(student)
        elif slug not in (GRADER_ERROR, NO_NOTEBOOK):  # these say nothing about the exercise
            self.tried[student] = judged

    @property
    def passed(self) -> int:
        return sum(bool(judged.verdict.get("passed")) for judged in self.tried.values())

    @property
    def frequent(self) -> list[tuple[str, list[str]]]:
        """Diagnosis and students, the most frequent first."""
        mistakes = defaultdict(list)
        for student, judged in self.tried.items():
            if judged.verdict.get("diagnosis") and not judged.verdict.get("passed"):
                mistakes[judged.verdict["diagnosis"]].append(student)
        return sorted(mistakes.items(), key=lambda item: (-len(item[1]), item[0]))


def report(course: Course, now: Standing | None = None) -> Outcome:
    """Write `page`, report.html, which loads nothing, and `misconceptions`, a CSV, to the course directory.

    now: how the class stands, where that is known already. CourseError before anything is graded.
    """
    exercises: dict[tuple[str, str], _Exercise] = defaultdict(_Exercise)
    records = {}
    for student, assignment in graded_folders(course):
        there = graded(course, student, assignment)
        records[student, assignment] = there.record
        for exercise, judged in there.exercises.items():
            exercises[assignment, exercise].add(student, judged)
    now = now or Standing(course)
    seconds = [record["seconds"] for record in records.values() if isinstance(record.get("seconds"), float)]
    review = [(*names, "; ".join(lines)) for names, lines in sorted(now.waiting.items())]
    review += [(*names, "would get other points today: see changes.csv") for names in sorted(now.held)]
    about = {
        "students": len(now.people),
        "trouble": now.trouble,
        "graded": len(records),
        "seconds": (median(seconds), max(seconds)) if seconds else (),
        "review": review,
        "shares": _shares(records),
        "assignments": [_handed_in(now, assignment, records) for assignment in now.assigned],
        "not_started": list(_not_started(now, exercises, records)),
        "exercises": exercises,
        **{"named": NAMED, "listed": LISTED, "samples": SAMPLES, "most": MAX_SAMPLE, "most_pairs": PAIRS},
    }
    files = {"page": course.root / "report.html", "misconceptions": course.root / "misconceptions.csv"}
    starters = {assignment: answers_in(notebook) for assignment, notebook in course.released.items()}

    def page() -> str:
        functions = {"address": _address, "word": word, "visible": visible}
        return document("report.html", "The class", pairs=_similar(exercises, starters), **about, **functions)

    write_page(files["page"], [repr(about), starters, known_answers()], page)
    lines = [
        [assignment, name, slug, len(students), len(about.tried), " ".join(students), about.tried[students[0]].message]
        for (assignment, name), about in exercises.items()
        for slug, students in about.frequent
    ]
    header = ["assignment", "exercise", "diagnosis", "students", "tried", "who", "example"]
    write_csv(files["misconceptions"], header, lines)
    said = f"{len(records)} submissions in {files['page']}, misconceptions in {files['misconceptions']}"
    return Outcome([said], files=files)


def _shares(records: dict[Submission, dict]) -> list[int]:
    """How many submissions have each tenth of the points, before penalties; [] if none has points."""
    shares = [r["score"] / r["points"] for r in records.values() if r.get("points")]
    tenths = [min(int(share * 10), 9) for share in shares]
    return [tenths.count(n) for n in range(10)] if shares else []


def _not_started(
    now: Standing, exercises: dict[Submission, _Exercise], records: dict[Submission, dict]
) -> Iterator[tuple[str, str]]:
    """(name, why) of the students of whom nothing came, or nothing but starters."""
    starters = {student for about in exercises.values() for student in about.not_started}
    tried = {student for about in exercises.values() for student in about.tried}
    here = {student for student, _ in records} - starters
    for person in now.people:
        if person.id not in tried | here:
            why = "what came was not understood" if person.id in now.trouble else "nothing was handed in"
            yield person.name or person.id, "no answer, or only starters" if person.id in starters else why


def _similar(exercises: dict[Submission, _Exercise], starters: dict[str, dict[str, dict]]) -> list[tuple[str, Pair]]:
    """(assignment, pair), the most alike first. starters: assignment -> exercise -> the released cell."""
    found = []
    for (assignment, name), about in exercises.items():
        starter = starters.get(assignment, {}).get(name, {"source": ""})["source"]
        answers = {student: judged.answer for student, judged in about.tried.items()}
        found += [(assignment, pair) for pair in similar(name, answers, starter)]
    return sorted(found, key=lambda line: -line[1].share)


def _handed_in(now: Standing, assignment: str, records: dict[Submission, dict]) -> dict:
    """What the page says of an assignment."""
    counts = {
        what: sum(a == assignment for _, a in group)
        for what, group in (("late", now.late), ("not graded", now.ungraded), ("collected anew", now.stale))
    }
    return {
        "name": assignment,
        "there": sum((p.id, assignment) in records for p in now.people),
        "missing": [word(p.name or p.id) for p in now.people if (p.id, assignment) in now.missing],
        "said": [f"{count} {what}" for what, count in counts.items() if count],
    }


def _address(student: str, assignment: str) -> str:
    """Of the student's page of feedback, beside this one."""
    parts = ("feedback", student, assignment, f"{assignment}.html")
    return "/".join(quote(part, errors="replace") for part in parts)
