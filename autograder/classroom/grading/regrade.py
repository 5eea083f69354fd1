"""Grading again what nobody changed: a grade that would become another one is held back and shown first.

    held/<student>/<assignment>/     what it would be, until somebody writes it or it is judged anew
    changes.csv                      whose grades would change, from what to what, and why
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ...text import visible
from ..course import HELD, Course, word
from ..files import write_atomically
from ..reports.export import write_csv
from .judging import Row
from .record import NAME, graded, judged_in, record_of

CHANGES = "changes.csv"


@dataclass(frozen=True)
class Change:
    """What would become of an exercise's points though its answer is the same; `because` says what is new."""

    student: str
    assignment: str
    exercise: str
    before: float
    after: float
    reason: str
    because: str

    def __str__(self) -> str:
        who = f"{word(self.student)} {word(self.assignment)} {self.exercise}"
        reason = f": {' '.join(visible(self.reason, 200).split())}" if self.reason else ""
        return f"{who}: {self.before:g} → {self.after:g} ({self.because}){reason}"


def changes_of(course: Course, row: Row, record: dict, graded_as: dict[str, str]) -> list[Change]:
    """The exercises whose points differ between a row and the grade that `record` is about."""
    before = record.get("by") or {}
    because = ", ".join(f"another {what}" for what in graded_as if before.get(what) != graded_as[what])
    because = because or "judged again"
    if row.failed:
        note = row.notes[-1] if row.notes else ""
        return [Change(*row.names, "all", record["score"], row.score, note, because)]
    old, changes = graded(course, *row.names).exercises, []
    for name, now in judged_in(row.notebook).items():
        points = old[name].points if name in old else 0.0
        if abs(points - now.points) > 1e-9:
            reason = "" if now.verdict["passed"] else f"{now.verdict['diagnosis']}: {now.message}"
            changes.append(Change(*row.names, name, points, now.points, reason, because))
    return changes


def hold(course: Course, row: Row, record: dict) -> None:
    """Keep a row beside the grades, so that it need not be judged again to be written."""
    if row.notebook and not row.failed:
        row.notebook["metadata"][NAME] = {**row.notebook["metadata"].get(NAME, {}), **record}
        write_atomically(course.notebook(HELD, *row.names), json.dumps(row.notebook).encode())


def held(course: Course) -> dict[tuple[str, str], Row]:
    """(student, assignment) -> the row that an earlier run held back, with its record in its notebook."""
    rows = {}
    for names in course.handed_in(HELD):
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            notebook = json.loads(course.notebook(HELD, *names).read_bytes())
            row = Row.from_record(*names, notebook["metadata"][NAME])
            if isinstance(notebook["metadata"][NAME]["by"], dict):
                row.notebook, row.kept = notebook, False
                rows[names] = row
    return rows


def holds_still(row: Row, record: dict, graded_as: dict[str, str]) -> bool:
    """Whether a row that was held back is of the answers of `record`, and would be judged in the same way now."""
    kept = row.notebook["metadata"][NAME]
    return kept["by"] == graded_as and all(kept.get(key) == record.get(key) for key in ("answers", "submitted"))


def held_of_others(course: Course, chosen: Iterable[tuple[str, str]]) -> list[Change]:
    """The changes that earlier runs held back, of submissions that are not among the chosen."""
    changes, chosen = [], set(chosen)
    for names, row in held(course).items():
        if names not in chosen and (record := record_of(course, *names)):
            changes += changes_of(course, row, record, row.notebook["metadata"][NAME]["by"])
    return changes


def release(course: Course, names: Iterable[tuple[str, str]]) -> None:
    """Forget what was held back of these submissions."""
    for student, assignment in names:
        shutil.rmtree(course.notebook(HELD, student, assignment).parent, ignore_errors=True)


def write_changes(course: Course, changes: list[Change]) -> Path | None:
    """Write changes.csv; remove it where nothing would change."""
    path = course.root / CHANGES
    if not changes:
        path.unlink(missing_ok=True)
        return None
    header = ["student", "assignment", "exercise", "before", "after", "because", "reason"]
    write_csv(path, header, [[getattr(change, column) for column in header] for change in changes])
    return path
