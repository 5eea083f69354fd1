"""Grades what was collected: many judges side by side, one row a submission.

A grade that would become another one, though nobody changed the answer, is held back and shown first:

    held/<student>/<assignment>/     what it would be, until somebody writes it or it is judged anew
    changes.csv                      whose grades would change, from what to what, and why
"""

import contextlib
import itertools
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from nbgrader.api import SubmittedAssignment

from ...text import visible
from .. import interrupt
from ..course import HELD, Course, CourseError, word, write_atomically
from ..standing import write_csv
from .gradebook import Lateness, marks_in, one_grader, open_gradebook, register, save, waiting
from .judging import NAME, Row, graded, graded_by, is_about, judged_in, place, submitted_notebook

CHANGES = "changes.csv"
LISTED = 20  # changes that are printed; the file has all


class Change(NamedTuple):
    """What would become of an exercise's points though its answer is the same; `because` says what is new."""

    student: str
    assignment: str
    exercise: str
    before: float
    after: float
    because: str
    reason: str

    def __str__(self) -> str:
        who = f"{word(self.student)} {word(self.assignment)} {self.exercise}"
        reason = f": {' '.join(visible(self.reason, 200).split())}" if self.reason else ""
        return f"{who}: {self.before:g} → {self.after:g} ({self.because}){reason}"


@dataclass
class GradeReport:
    """The rows of all that was asked for. `changes` are held back: their rows have the grade that still holds."""

    rows: list[Row]
    changes: list[Change] = field(default_factory=list)
    changed: Path | None = None

    @property
    def status(self) -> int:
        """Exit status: 0, or 1 where a person must decide about a row."""
        return int(bool(self.changes) or any(row.needs_review for row in self.rows))

    def print(self, out: Callable[[str], None] = print) -> None:
        for line in (*self.rows, *(f"would change: {line}" for line in self.changes_in_words())):
            out(str(line))
        kept, waiting = sum(row.kept for row in self.rows), sum(row.needs_review for row in self.rows)
        before = f", {kept} of them before and unchanged since" if kept else ""
        review = f"; {waiting} of them need review" if waiting else ""
        out(f"{len(self.rows)} submissions graded{before}{review}")

    def changes_in_words(self) -> Iterator[str]:
        yield from map(str, self.changes[:LISTED])
        if self.changes:
            more = f"and {len(self.changes) - LISTED} more; " if len(self.changes) > LISTED else ""
            yield f"{more}nothing of it is written; see {self.changed}; then grade with --write-changes"


def grade(
    course: Course,
    assignments: list[str] | None = None,
    students: list[str] | None = None,
    *,
    workers: int | None = None,
    confine: bool = True,
    again: bool = False,
    write_changes: bool = False,
    cluster: str | None = None,
    new_judge: Callable[[], contextlib.AbstractContextManager] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> GradeReport:
    """Grade what was handed in, and write autograded/ and the gradebook. Grading again gives the same rows.

    A grade is kept while answers, exercise, judge, backend and gradebook are the same; `again` grades all. So a run
    that was stopped goes on where it was. Where the answers are the same and the points are not, the old grade holds
    until `write_changes`. `assignments` and `students` choose some. `workers` judge at the same time: one for each
    card, or for each processor where there is no card; or those of the Dask `cluster` at an address. Every submission
    gets a row, however broken; CourseError is for a call that is itself wrong, and CannotJudge for an installation
    that misjudges known answers: then nothing is graded.
    """
    chosen = _chosen(course, assignments, students)
    lateness = Lateness(course)
    with contextlib.ExitStack() as stack:
        judges = None
        if cluster:
            from .judges import on_cluster

            judges = stack.enter_context(on_cluster(cluster, confine, new_judge))
        version, backend = judges.place if judges else place()
        graded_as = {a: graded_by(course, a, version, f"{backend} {confine}") for _, a in chosen}
        stack.enter_context(one_grader(course, progress))
        gradebook = stack.enter_context(open_gradebook(course))
        register(course, gradebook, {assignment for _, assignment in chosen})
        there = {(one.student_id, one.assignment.name): one for one in gradebook.db.query(SubmittedAssignment)}
        records = {names: graded(course, *names).record for names in chosen if names in there}
        records = {names: record for names, record in records.items() if isinstance(record.get("by"), dict)}
        # where the answers are what was graded in this gradebook
        before = {n: record for n, record in records.items() if is_about(record, submitted_notebook(course, *n))}
        kept = {n for n, record in before.items() if not again and record["by"] == graded_as[n[1]]}
        rows = [Row.from_record(*names, before[names]) for names in sorted(kept)]
        for names in kept:
            lateness.apply(there[names])  # course.toml may have changed
        gradebook.db.commit()
        ready = [
            row
            for n, row in ({} if again else held(course)).items()
            if n in before.keys() - kept and holds_still(row, before[n], graded_as[n[1]])
        ]
        todo = [names for names in chosen if names not in kept | {row.names for row in ready}]
        judged = iter(())
        if todo:
            if not judges:
                from .judges import Here  # and torch with it, which takes longer than a run with nothing new

                judges = Here(workers, confine, new_judge)
            if new_judge is None:
                judges.prove({check.exercise for name in {a for _, a in todo} for check in course.checks(name)})
            judged = stack.enter_context(contextlib.closing(judges.rows(course, todo)))  # Ctrl-C: before the gradebook
        changes: list[Change] = []
        for row in itertools.chain(ready, _with_progress(judged, len(todo), progress)):
            names, by = row.names, graded_as[row.assignment]
            record = {**row.record(), **({} if row.failed else {"by": by})}
            different = changes_of(course, row, before[names], by) if names in before and not write_changes else []
            if not different:
                save(course, gradebook, lateness, row, record)
            elif row.notebook and not row.failed:  # beside the grades: it need not be judged again to be written
                row.notebook["metadata"][NAME] = {**row.notebook["metadata"].get(NAME, {}), **record}
                write_atomically(course.notebook(HELD, *names), json.dumps(row.notebook).encode())
            changes += different
            rows.append(Row.from_record(*names, before[names]) if different else row)
        with contextlib.suppress(CourseError):  # a database that went away has made its rows failed already
            waits = waiting(course, marks_in(gradebook, only_waiting=True))
            for row in rows:
                lines = waits.get(row.names, [])
                row.needs_review, row.notes = row.failed or bool(lines), list(dict.fromkeys([*row.notes, *lines]))
    for names in set(chosen) - {(change.student, change.assignment) for change in changes}:
        shutil.rmtree(course.notebook(HELD, *names).parent, ignore_errors=True)
    return GradeReport(sorted(rows, key=lambda row: row.names), changes, list_changes(course, changes, set(chosen)))


def _with_progress(rows: Iterator[Row], count: int, say: Callable[[str], None]) -> Iterator[Row]:
    began = time.monotonic()
    for done, row in enumerate(rows, 1):
        yield row
        interrupt.check()
        minutes, seconds = divmod(round((time.monotonic() - began) / done * (count - done)), 60)
        left = f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
        say(f"[{done}/{count}] {row} ({row.seconds:.1f} s; {left} left)")


def _chosen(course: Course, assignments: list[str] | None, students: list[str] | None) -> list[tuple[str, str]]:
    there = course.handed_in()
    if not there:
        raise CourseError(f"{course.root / 'submitted'}: nothing was handed in; run `autograder collect` first")
    for what, asked, known in (
        ("assignment", assignments, {a for _, a in there} | set(course.released)),
        ("student", students, {s for s, _ in there}),
    ):
        for name in asked or ():
            if name not in known:
                names = ", ".join(map(word, sorted(known)))
                raise CourseError(f"there is no {what} {name!r}; there are: {names}")
    chosen = [(s, a) for s, a in there if (not students or s in students) and (not assignments or a in assignments)]
    if not chosen:
        raise CourseError("none of these students handed in one of these assignments")
    return chosen


def changes_of(course: Course, row: Row, record: dict, graded_as: dict[str, str]) -> list[Change]:
    """The exercises whose points differ between a row and the grade that `record` is about."""
    before = record.get("by") or {}
    others = [f"another {what}" for what in graded_as if before.get(what) != graded_as[what]]
    because = ", ".join(others) or "judged again"
    if row.failed:
        note = row.notes[-1] if row.notes else ""
        return [Change(*row.names, "all", record["score"], row.score, because, note)]
    old, changes = graded(course, *row.names).exercises, []
    for name, now in judged_in(row.notebook).items():
        points = old[name].points if name in old else 0.0
        if abs(points - now.points) > 1e-9:
            reason = "" if now.verdict["passed"] else f"{now.verdict['diagnosis']}: {now.verdict['message']}"
            changes.append(Change(*row.names, name, points, now.points, because, reason))
    return changes


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
    now = row.notebook["metadata"][NAME]
    return now["by"] == graded_as and all(now.get(key) == record.get(key) for key in ("answers", "submitted"))


def list_changes(course: Course, changes: Iterable[Change] = (), chosen: Iterable[tuple[str, str]] = ()) -> Path | None:
    """Write changes.csv: these, and those that earlier runs held back of submissions that are not among the chosen.

    None, and no file, where nothing would change.
    """
    path, changes = course.root / CHANGES, list(changes)
    for names, row in held(course).items():
        if names not in chosen and (record := graded(course, *names).record):
            changes += changes_of(course, row, record, row.notebook["metadata"][NAME]["by"])
    if changes:
        write_csv(path, Change._fields, changes)
        return path
    path.unlink(missing_ok=True)
    return None
