"""One page about the class for its instructor: how it stands, what was hard, who waits for a decision.

It names answers that resemble each other more than the exercise explains. That is a hint to look at both, and no proof.
An answer is the set of its runs of RUN tokens, with names, numbers and strings left out. What the starter or a known
answer has is subtracted, and what many students have: there it is the exercise that makes answers alike.
"""

import io
import itertools
import keyword
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from urllib.parse import quote

from ...text import visible
from ...verdict import Slug
from ..course import Course, Outcome, file_hash, word
from ..grading.gradebook import graded_folders
from ..grading.judging import Judged, graded
from ..standing import Standing, Submission, write_csv
from ..submission import answers_in
from ..templates import document, write_page

NAMED = 12  # people that a line names
RUN = 10  # tokens; about two lines
ENOUGH = 15  # runs of an answer's own; with fewer there is nothing to compare
ALIKE = 0.8
COMMON = 20  # students
MAX_CHARACTERS = 20_000
ROOT = Path(__file__).resolve().parents[3]


@dataclass
class _Exercise:
    """Who tried an exercise of an assignment (student -> what was judged), and of whom nothing came but the starter."""

    tried: dict[str, Judged] = field(default_factory=dict)
    not_started: list[str] = field(default_factory=list)

    @property
    def passed(self) -> int:
        return sum(bool(judged.verdict.get("passed")) for judged in self.tried.values())

    @property
    def frequent(self) -> list[tuple[str, list[str]]]:
        """Diagnosis and students, the most frequent first."""
        mistakes = defaultdict(list)
        for student, verdict in ((student, judged.verdict) for student, judged in self.tried.items()):
            if verdict.get("diagnosis") and not verdict.get("passed"):
                mistakes[verdict["diagnosis"]].append(student)
        return sorted(mistakes.items(), key=lambda item: (-len(item[1]), item[0]))


def report(course: Course, now: Standing | None = None) -> Outcome:
    """Write `page`, report.html, which loads nothing, and `misconceptions`, a CSV. CourseError if nothing is graded."""
    exercises: dict[tuple[str, str], _Exercise] = defaultdict(_Exercise)
    records = {}
    for student, assignment in graded_folders(course):
        there = graded(course, student, assignment)
        records[student, assignment] = there.record
        for exercise, judged in there.exercises.items():
            slug, about = judged.verdict.get("diagnosis"), exercises[assignment, exercise]
            if slug == Slug.NOT_ATTEMPTED:
                about.not_started.append(student)
            elif slug not in (Slug.GRADER_ERROR, Slug.NO_NOTEBOOK):  # these say nothing about the exercise
                about.tried[student] = judged
    now = now or Standing(course)
    seconds = [record["seconds"] for record in records.values() if isinstance(record.get("seconds"), float)]
    tenths = [min(int(10 * r["score"] / r["points"]), 9) for r in records.values() if r.get("points")]
    review = [(*names, "; ".join(lines)) for names, lines in sorted(now.waiting.items())]
    review += [(*names, "would get other points today: see changes.csv") for names in sorted(now.held)]
    about = {
        "students": len(now.people),
        "trouble": now.trouble,
        "graded": len(records),
        "seconds": (median(seconds), max(seconds)) if seconds else (),
        "review": review,
        "shares": [tenths.count(n) for n in range(10)] if tenths else [],  # before penalties
        "assignments": [_handed_in(now, assignment, records) for assignment in now.assigned],
        "not_started": _not_started(now, exercises, records),
        "exercises": exercises,
        "named": NAMED,
    }
    files = {"page": course.root / "report.html", "misconceptions": course.root / "misconceptions.csv"}
    starters = {assignment: answers_in(notebook) for assignment, notebook in course.released.items()}

    def page() -> str:
        pairs = []
        for (assignment, name), one in exercises.items():
            starter = starters.get(assignment, {}).get(name, {"source": ""})["source"]
            answers = {student: judged.answer for student, judged in one.tried.items()}
            pairs += [(assignment, pair) for pair in similar(name, answers, starter)]
        pairs.sort(key=lambda line: -line[1].share)
        functions = {"address": _address, "word": word, "visible": visible}
        return document("report.html", "The class", pairs=pairs, **about, **functions, common=COMMON)

    folders = (ROOT / "tests" / "right", ROOT / "tests" / "wrong", ROOT / "solutions")  # of the known answers
    known = [file_hash(path) for folder in folders for path in sorted(folder.rglob("*.py"))]
    write_page(files["page"], [repr(about), starters, known], page)
    lines = []
    for (assignment, name), one in exercises.items():
        for slug, students in one.frequent:
            example = one.tried[students[0]].verdict.get("message", "")
            lines.append([assignment, name, slug, len(students), len(one.tried), " ".join(students), example])
    header = ["assignment", "exercise", "diagnosis", "students", "tried", "who", "example"]
    write_csv(files["misconceptions"], header, lines)
    said = f"{len(records)} submissions in {files['page']}, misconceptions in {files['misconceptions']}"
    return Outcome([said], files=files)


def _not_started(now: Standing, exercises: dict[Submission, _Exercise], records: Iterable[Submission]) -> list:
    """(name, why) of the students of whom nothing came, or nothing but starters."""
    starters = {student for about in exercises.values() for student in about.not_started}
    tried = {student for about in exercises.values() for student in about.tried}
    came = tried | ({student for student, _ in records} - starters)
    why = dict.fromkeys(now.trouble, "what came was not understood")
    why |= dict.fromkeys(starters, "no answer, or only starters")
    return [(p.name or p.id, why.get(p.id, "nothing was handed in")) for p in now.people if p.id not in came]


def _handed_in(now: Standing, assignment: str, records: dict[Submission, dict]) -> dict:
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
    return quote(f"feedback/{student}/{assignment}/{assignment}.html", errors="replace")


@dataclass(frozen=True)
class Pair:
    """Two students' answers to an exercise: `share` of the smaller one's `own` runs are in the other one, too."""

    exercise: str
    first: str
    second: str
    share: float
    own: int


def runs(source: str) -> set[tuple[str, ...]]:
    """The runs of an answer. Text that is no Python gives those before its first error."""
    tokens, dotted = [], False
    with_errors = tokenize.generate_tokens(io.StringIO(source[:MAX_CHARACTERS]).readline)
    try:
        for token in with_errors:
            if token.type == tokenize.NAME:
                tokens.append(token.string if dotted or keyword.iskeyword(token.string) else "name")
            elif token.type in (tokenize.NUMBER, tokenize.STRING):
                tokens.append("value")
            elif token.type == tokenize.OP:
                tokens.append(token.string)
            dotted = token.string == "."
    except (tokenize.TokenError, SyntaxError):
        pass
    return {tuple(tokens[at : at + RUN]) for at in range(len(tokens) - RUN + 1)}


def similar(exercise: str, answers: dict[str, str], starter: str) -> list[Pair]:
    """The pairs of students (student -> answer) whose answers are alike, the most alike first."""
    known = _gallery(exercise) | runs(starter)
    own = {student: runs(answer) - known for student, answer in answers.items()}
    having = defaultdict(list)
    for student in sorted(own):
        for run in own[student]:
            having[run].append(student)
    common = {run for run, students in having.items() if len(students) > COMMON}
    shared: Counter[tuple[str, str]] = Counter()
    for run in having.keys() - common:
        shared.update(itertools.combinations(having[run], 2))
    sizes = {student: len(found - common) for student, found in own.items()}
    pairs = []
    for (first, second), count in shared.items():
        smaller = min(sizes[first], sizes[second])
        if smaller >= ENOUGH and count >= ALIKE * smaller:
            pairs.append(Pair(exercise, first, second, count / smaller, smaller))
    return sorted(pairs, key=lambda pair: (-pair.share, -pair.own, pair.first, pair.second))


@cache
def _gallery(exercise: str) -> frozenset[tuple[str, ...]]:
    """The runs of all known answers, right and wrong, as far as this installation has them."""
    from ...gallery import answers_in  # and torch with it, which a report of what it has said before does not need

    return frozenset().union(*(runs(known.source) for known in answers_in(ROOT / "tests", [exercise])))
