"""One page about the class for its instructor: how it stands, what was hard, who waits for a decision."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from statistics import median
from urllib.parse import quote

from ..text import visible
from ..verdict import GRADER_ERROR
from .course import Course, word, write_atomically
from .gradebook import graded_folders
from .pages import bar, document
from .record import record_of
from .standing import Standing, standing
from .submission import NO_NOTEBOOK, exercise_of, grade_id, is_check

NOT_ATTEMPTED = "not-attempted"
SAMPLES, LISTED = 2, 5  # students named per misconception; misconceptions per exercise


@dataclass
class _Exercise:
    """Verdicts on one exercise of one assignment."""

    passed: int = 0
    tried: int = 0
    not_started: list[str] = field(default_factory=list)
    mistakes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


@dataclass
class ClassReport:
    page: Path
    submissions: int
    status: int = 0

    def print(self, out: Callable[[str], None] = print) -> None:
        out(f"{self.submissions} submissions in {self.page}")


def report(course: Course) -> ClassReport:
    """Write report.html to the course directory: one file that loads nothing. CourseError before anything is graded."""
    graded = graded_folders(course)
    exercises: dict[tuple[str, str], _Exercise] = defaultdict(_Exercise)
    review, seconds = [], []
    for student, assignment in graded:
        record = record_of(course, student, assignment)
        seconds += [record["seconds"]] if isinstance(record.get("seconds"), float) else []
        if record.get("needs_review"):
            review.append((student, assignment, "; ".join(record.get("notes", []))))
        for exercise, verdict in _verdicts(course, student, assignment):
            _count(exercises[assignment, exercise], student, verdict)
    now = standing(course)
    body = (
        f'<header><h1>The class</h1><p class="who">{len(now.people)} students, {len(graded)} graded submissions'
        + (f", {median(seconds):.1f} s for one (median)" if seconds else "")
        + "</p></header>"
        + _review(review)
        + _assignments(now, set(graded))
        + "".join(_exercise(*names, about) for names, about in exercises.items())
    )
    path = course.root / "report.html"
    write_atomically(path, document("The class", body).encode())
    return ClassReport(path, len(graded))


def _verdicts(course: Course, student: str, assignment: str) -> list[tuple[str, dict]]:
    try:
        cells = json.loads(course.notebook("autograded", student, assignment).read_bytes())["cells"]
    except (OSError, ValueError, LookupError):
        return []
    checks = [(exercise_of(grade_id(c)), c["metadata"].get("verdict")) for c in cells if is_check(c)]
    return [(exercise, verdict) for exercise, verdict in checks if isinstance(verdict, dict)]


def _count(exercise: _Exercise, student: str, verdict: dict) -> None:
    slug = verdict.get("diagnosis")
    if slug in (GRADER_ERROR, NO_NOTEBOOK):
        return  # it says nothing about the exercise
    if slug == NOT_ATTEMPTED:
        exercise.not_started.append(student)
        return
    exercise.tried += 1
    exercise.passed += bool(verdict.get("passed"))
    if slug and not verdict.get("passed"):
        exercise.mistakes[slug].append(student)


def _review(rows: list[tuple[str, str, str]]) -> str:
    if not rows:
        return ""
    lines = "".join(
        f"<li>{_link(student, assignment)}, {escape(assignment)}: {escape(visible(notes, 300))}</li>"
        for student, assignment, notes in rows
    )
    return f'<section class="card"><h2>Waiting for you</h2><ul class="list">{lines}</ul></section>'


def _assignments(now: Standing, graded: set[tuple[str, str]]) -> str:
    lines = []
    for assignment in now.assigned:
        there = sum((p.id, assignment) in graded for p in now.people)
        missing = [p.name or p.id for p in now.people if (p.id, assignment) in now.missing]
        said = [
            f"{count} {what}"
            for what, group in (("late", now.late), ("not graded", now.ungraded), ("collected anew", now.stale))
            if (count := sum(a == assignment for _, a in group))
        ]
        said += [f"missing: {', '.join(map(word, missing))}"] if missing else []
        lines.append(
            f'<li><div class="row"><span>{escape(assignment)}</span><span>{there} of {len(now.people)}</span></div>'
            f'{bar(there, len(now.people))}<p class="who">{escape("; ".join(said))}</p></li>'
        )
    trouble = "".join(
        f"<li>{escape(word(student))}: {escape(visible(line, 300))}</li>"
        for student, said in sorted(now.trouble.items())
        for line in said
    )
    not_understood = f'<h2>Not understood</h2><ul class="list">{trouble}</ul>' if trouble else ""
    return f'<section class="card"><h2>Handed in</h2><ul class="list">{"".join(lines)}</ul>{not_understood}</section>'


def _exercise(assignment: str, name: str, about: _Exercise) -> str:
    head = (
        f'<div class="row"><h2>{escape(name)}</h2><span>{about.passed} of {about.tried} passed</span></div>'
        f"{bar(about.passed, about.tried)}"
    )
    counts = Counter({slug: len(students) for slug, students in about.mistakes.items()})
    lines = []
    for slug, count in counts.most_common(LISTED):
        samples = ", ".join(_link(student, assignment) for student in about.mistakes[slug][:SAMPLES])
        lines.append(f'<li class="row"><span><code>{escape(slug)}</code>: {samples}</span><span>{count}</span></li>')
    if about.not_started:
        names = ", ".join(_link(student, assignment) for student in about.not_started)
        lines.append(f'<li class="row"><span>not started: {names}</span><span>{len(about.not_started)}</span></li>')
    return f'<section class="card">{head}<ul class="list">{"".join(lines)}</ul></section>'


def _link(student: str, assignment: str) -> str:
    """The student's name, linked to the feedback page beside this report."""
    target = "/".join(quote(part, errors="replace") for part in ("feedback", student, assignment, f"{assignment}.html"))
    return f'<a href="{escape(target)}">{escape(word(student))}</a>'
