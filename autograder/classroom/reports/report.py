"""One page about the class for its instructor: how it stands, what was hard, who waits for a decision."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from statistics import median
from urllib.parse import quote

from ...text import visible
from ...verdict import GRADER_ERROR
from ..course import Course, word, write_atomically
from ..grading.gradebook import graded_folders
from ..grading.record import record_of
from ..standing import Standing, Submission, standing
from ..submission import NO_NOTEBOOK, exercise_of, grade_id, is_answer, is_check
from .export import write_csv
from .pages import bar, document, highlighted, histogram
from .similar import Pair, similar

NOT_ATTEMPTED = "not-attempted"
SAMPLES, LISTED, PAIRS = 2, 5, 20  # answers shown per misconception; misconceptions per exercise; similar answers
NAMED = 12  # people that a line names
MAX_SAMPLE = 4000


@dataclass
class _Exercise:
    """Verdicts on one exercise of one assignment. `mistakes` has diagnosis -> students, `answers` student -> source."""

    passed: int = 0
    tried: int = 0
    not_started: list[str] = field(default_factory=list)
    mistakes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    messages: dict[str, str] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)

    def count(self, student: str, verdict: dict, answer: str) -> None:
        slug = verdict.get("diagnosis")
        if slug in (GRADER_ERROR, NO_NOTEBOOK):
            return  # it says nothing about the exercise
        if slug == NOT_ATTEMPTED:
            self.not_started.append(student)
            return
        self.tried += 1
        self.passed += bool(verdict.get("passed"))
        self.answers[student] = answer
        if slug and not verdict.get("passed"):
            self.mistakes[slug].append(student)
            self.messages.setdefault(slug, str(verdict.get("message", "")))

    @property
    def frequent(self) -> list[tuple[str, list[str]]]:
        """Diagnosis and students, the most frequent first."""
        return sorted(self.mistakes.items(), key=lambda item: (-len(item[1]), item[0]))


@dataclass
class ClassReport:
    page: Path
    misconceptions: Path
    submissions: int
    status: int = 0

    def print(self, out: Callable[[str], None] = print) -> None:
        out(f"{self.submissions} submissions in {self.page}, misconceptions in {self.misconceptions}")


def report(course: Course, now: Standing | None = None) -> ClassReport:
    """Write report.html, one file that loads nothing, and misconceptions.csv to the course directory.

    now: how the class stands, where that is known already. CourseError before anything is graded.
    """
    graded = graded_folders(course)
    exercises: dict[tuple[str, str], _Exercise] = defaultdict(_Exercise)
    records = {names: record_of(course, *names) for names in graded}
    for student, assignment in graded:
        for exercise, verdict, answer in verdicts(course, student, assignment):
            exercises[assignment, exercise].count(student, verdict, answer)
    now = now or standing(course)
    body = (
        f'<header><h1>The class</h1><p class="who">{len(now.people)} students, {len(graded)} graded submissions'
        f"{_seconds(records)}</p></header>"
        + _review(now)
        + _points(records)
        + _assignments(now, records)
        + _not_started(now, exercises, records)
        + "".join(_exercise(*names, about) for names, about in exercises.items())
        + _similar(course, exercises)
    )
    path = course.root / "report.html"
    write_atomically(path, document("The class", body).encode())
    misconceptions = course.root / "misconceptions.csv"
    _write_misconceptions(misconceptions, exercises)
    return ClassReport(path, misconceptions, len(graded))


def verdicts(course: Course, student: str, assignment: str) -> list[tuple[str, dict, str]]:
    """(exercise, verdict, answer) of a graded submission."""
    try:
        cells = json.loads(course.notebook("autograded", student, assignment).read_bytes())["cells"]
    except (OSError, ValueError, LookupError):
        return []
    answers = {grade_id(c): "".join(c["source"]) for c in cells if is_answer(c)}
    checks = [(exercise_of(grade_id(c)), c["metadata"].get("verdict")) for c in cells if is_check(c)]
    return [(name, verdict, answers.get(name, "")) for name, verdict in checks if isinstance(verdict, dict)]


def _write_misconceptions(path: Path, exercises: dict[Submission, _Exercise]) -> None:
    """A line for each diagnosis in each exercise: how many students of those who tried, who, and what one was told."""
    lines = [
        [assignment, name, slug, len(students), about.tried, " ".join(students), about.messages[slug]]
        for (assignment, name), about in exercises.items()
        for slug, students in about.frequent
    ]
    write_csv(path, ["assignment", "exercise", "diagnosis", "students", "tried", "who", "example"], lines)


def _seconds(records: dict[Submission, dict]) -> str:
    seconds = [record["seconds"] for record in records.values() if isinstance(record.get("seconds"), float)]
    return f", {median(seconds):.1f} s for one (median; the longest {max(seconds):.1f} s)" if seconds else ""


def _points(records: dict[Submission, dict]) -> str:
    """How the submissions share the points, before penalties."""
    shares = [r["score"] / r["points"] for r in records.values() if r.get("points")]
    if not shares:
        return ""
    counts = [0] * 10
    for share in shares:
        counts[min(int(share * 10), 9)] += 1
    labels = [f"{10 * n} to {10 * n + 10} % of the points" for n in range(10)]
    return f'<section class="card"><h2>Points of a submission</h2>{histogram(labels, counts)}</section>'


def _not_started(now: Standing, exercises: dict[Submission, _Exercise], records: dict[Submission, dict]) -> str:
    """Students of whom nothing came, or nothing but starters."""
    starters, tried = set(), set()
    for about in exercises.values():
        starters |= set(about.not_started)
        tried |= set(about.answers)
    here = {student for student, _ in records}
    lines = [
        f"<li>{escape(word(p.name or p.id))}: {_why(p.id, starters, now)}</li>"
        for p in now.people
        if p.id not in tried and (p.id in starters or p.id not in here)
    ]
    return f'<section class="card"><h2>Not started</h2><ul class="list">{"".join(lines)}</ul></section>' * bool(lines)


def _why(student: str, starters: set[str], now: Standing) -> str:
    if student in starters:
        return "no answer, or only starters"
    return "what came was not understood" if student in now.trouble else "nothing was handed in"


def _similar(course: Course, exercises: dict[Submission, _Exercise]) -> str:
    lines: list[tuple[str, Pair]] = []
    for (assignment, name), about in exercises.items():
        cells = course.released.get(assignment, {"cells": []})["cells"]
        starter = next((c["source"] for c in cells if is_answer(c) and grade_id(c) == name), "")
        lines += [(assignment, pair) for pair in similar(name, about.answers, starter)]
    lines.sort(key=lambda line: -line[1].share)
    listed = "".join(
        f'<li class="row"><span>{escape(pair.exercise)}: {_link(pair.first, assignment)} and '
        f"{_link(pair.second, assignment)}</span><span>{pair.share:.0%} of {pair.own} places</span></li>"
        for assignment, pair in lines[:PAIRS]
    )
    hint = (
        '<p class="who">A hint to look at both, and no proof: what is in the starter, in the known answers of the '
        "course, or in the answers of more than 20 students does not count; names and numbers do not either.</p>"
    )
    more = f'<p class="who">{len(lines) - PAIRS} more pairs.</p>' if len(lines) > PAIRS else ""
    shown = f'<section class="card"><h2>Similar answers</h2>{hint}<ul class="list">{listed}</ul>{more}</section>'
    return shown if lines else ""


def _review(now: Standing) -> str:
    rows = [(*names, "; ".join(lines)) for names, lines in sorted(now.waiting.items())]
    rows += [(*names, "would get other points today: see changes.csv") for names in sorted(now.held)]
    if not rows:
        return ""
    lines = "".join(
        f"<li>{_link(student, assignment)}, {escape(assignment)}: {escape(visible(notes, 300))}</li>"
        for student, assignment, notes in rows
    )
    return f'<section class="card"><h2>Waiting for you</h2><ul class="list">{lines}</ul></section>'


def _assignments(now: Standing, graded: dict[Submission, dict]) -> str:
    lines = []
    for assignment in now.assigned:
        there = sum((p.id, assignment) in graded for p in now.people)
        missing = [p.name or p.id for p in now.people if (p.id, assignment) in now.missing]
        said = [
            f"{count} {what}"
            for what, group in (("late", now.late), ("not graded", now.ungraded), ("collected anew", now.stale))
            if (count := sum(a == assignment for _, a in group))
        ]
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        said += [f"{len(missing)} missing: {', '.join(map(word, missing[:NAMED]))}{more}"] if missing else []
        lines.append(
            f'<li><div class="row"><span>{escape(assignment)}</span><span>{there} of {len(now.people)}</span></div>'
            f'{bar(there, len(now.people))}<p class="who">{escape("; ".join(said))}</p></li>'
        )
    trouble = "".join(
        f"<li>{escape(word(student))}: {escape(visible(line, 300))}</li>"
        for student, said in sorted(now.trouble.items())
        for line in said
    )
    not_understood = f'<section class="card"><h2>Not understood</h2><ul class="list">{trouble}</ul></section>'
    return (
        f'<section class="card"><h2>Handed in</h2><ul class="list">{"".join(lines)}</ul></section>'
        + not_understood * bool(trouble)
    )


def _exercise(assignment: str, name: str, about: _Exercise) -> str:
    head = (
        f'<div class="row"><h2>{escape(name)}</h2><span>{about.passed} of {about.tried} passed</span></div>'
        f"{bar(about.passed, about.tried)}"
    )
    lines = []
    for slug, students in about.frequent[:LISTED]:
        samples = "".join(
            f"<details><summary>Answer of {escape(word(student))}</summary>"
            f"{highlighted(about.answers[student][:MAX_SAMPLE])}</details>"
            for student in students[:SAMPLES]
        )
        lines.append(
            f'<li><div class="row"><span><code>{escape(slug)}</code>: {_links(students, assignment)}</span>'
            f'<span>{len(students)}</span></div><p class="who">{escape(visible(about.messages[slug], 300))}</p>'
            f"{samples}</li>"
        )
    if about.not_started:
        names = _links(about.not_started, assignment)
        lines.append(f'<li class="row"><span>not started: {names}</span><span>{len(about.not_started)}</span></li>')
    return f'<section class="card">{head}<ul class="list">{"".join(lines)}</ul></section>'


def _links(students: list[str], assignment: str) -> str:
    more = f" and {len(students) - NAMED} more" if len(students) > NAMED else ""
    return ", ".join(_link(student, assignment) for student in students[:NAMED]) + more


def _link(student: str, assignment: str) -> str:
    """The student's name, linked to the feedback page beside this report."""
    target = "/".join(quote(part, errors="replace") for part in ("feedback", student, assignment, f"{assignment}.html"))
    return f'<a href="{escape(target)}">{escape(word(student))}</a>'
