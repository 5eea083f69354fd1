"""Grades what was collected: many judges side by side, one row a submission.

    submitted/ ──grade──▶ autograded/ + gradebook.db ──feedback──▶ feedback/
                                                     ──export────▶ grades.csv, exercises.csv
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Gradebook

from .. import interrupt
from ..course import Course, CourseError, word
from ..locks import one_grader
from .gradebook import Lateness, graded_in, open_gradebook, register, save, waiting
from .judging import Row
from .record import graded_by, is_about, place, record_of, submitted_notebook
from .regrade import Change, changes_of, held, held_of_others, hold, holds_still, release
from .regrade import write_changes as write_list

__all__ = ["GradeReport", "grade"]

LISTED = 20  # changes that are printed; changes.csv has all


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
        for row in self.rows:
            out(str(row))
        for line in self.changes_in_words():
            out(f"would change: {line}")
        waiting = sum(row.needs_review for row in self.rows)
        kept = sum(row.kept for row in self.rows)
        out(
            f"{len(self.rows)} submissions graded"
            + (f", {kept} of them before and unchanged since" if kept else "")
            + (f"; {waiting} of them need review" if waiting else "")
        )

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
            from .cluster import Cluster

            judges = stack.enter_context(Cluster(cluster, confine, new_judge))
        version, backend = judges.place if judges else place()
        graded_as = {a: graded_by(course, a, version, f"{backend} {confine}") for _, a in chosen}
        stack.enter_context(one_grader(course, progress))
        gradebook = stack.enter_context(open_gradebook(course))
        register(course, gradebook, {assignment for _, assignment in chosen})
        before = _graded_before(course, gradebook, chosen)
        kept = {n for n, record in before.items() if not again and record["by"] == graded_as[n[1]]}
        rows = [Row.from_record(*names, before[names]) for names in sorted(kept)]
        lateness.apply_to(gradebook, kept)  # course.toml may have changed
        ready = [
            row
            for n, row in ({} if again else held(course)).items()
            if n in before.keys() - kept and holds_still(row, before[n], graded_as[n[1]])
        ]
        todo = [names for names in chosen if names not in kept | {row.names for row in ready}]
        judged = iter(())
        if todo:
            if not judges:
                from .here import Here  # and torch with it, which takes longer than a run with nothing new

                judges = Here(workers, confine, new_judge)
            judges.prove({check.exercise for name in {a for _, a in todo} for check in course.checks(name)})
            judged = stack.enter_context(contextlib.closing(judges.rows(course, todo)))  # Ctrl-C: before the gradebook
        changes: list[Change] = []
        for row in itertools.chain(ready, _with_progress(judged, len(todo), progress)):
            names, by = row.names, graded_as[row.assignment]
            record = {**row.record(), **({} if row.failed else {"by": by})}
            different = changes_of(course, row, before[names], by) if names in before and not write_changes else []
            if different:
                hold(course, row, record)
                changes += different
                rows.append(Row.from_record(*names, before[names]))
            else:
                save(course, gradebook, lateness, row, record)
                rows.append(row)
        with contextlib.suppress(CourseError):  # a database that went away has made its rows failed already
            waits = waiting(course, gradebook)
            for row in rows:
                lines = waits.get(row.names, [])
                row.needs_review, row.notes = row.failed or bool(lines), list(dict.fromkeys([*row.notes, *lines]))
    release(course, set(chosen) - {(change.student, change.assignment) for change in changes})
    report = GradeReport(sorted(rows, key=lambda row: row.names), changes)
    report.changed = write_list(course, changes + held_of_others(course, chosen))
    return report


def _graded_before(course: Course, gradebook: Gradebook, chosen: list[tuple[str, str]]) -> dict[tuple[str, str], dict]:
    """The records of those among the chosen whose answers are what was graded in this gradebook."""
    there = graded_in(gradebook)
    before = {}
    for names in chosen:
        record = record_of(course, *names)
        if names not in there or not isinstance(record.get("by"), dict):
            continue
        if is_about(record, submitted_notebook(course, *names)):
            before[names] = record
    return before


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
    chosen = [
        (student, assignment)
        for student, assignment in there
        if (not students or student in students) and (not assignments or assignment in assignments)
    ]
    if not chosen:
        raise CourseError("none of these students handed in one of these assignments")
    return chosen
