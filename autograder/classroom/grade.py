"""Grades what was collected: many judges side by side, one row a submission.

    submitted/ ──grade──▶ autograded/ + gradebook.db ──feedback──▶ feedback/
                                                     ──export────▶ grades.csv, exercises.csv
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nbgrader.api import Gradebook

from ..exercises import EXERCISES
from ..judge import Judge, this_backend
from ..judge.jax import JaxMissing
from ..judge.pool import JudgePool, SturdyJudge
from .course import Course, CourseError, word
from .gradebook import graded_in, open_gradebook, register, save
from .judging import Row, judge_submission
from .locks import one_grader, scratch_folder
from .record import answers_hash, file_hash, graded_by, record_of, submitted_notebook
from .submission import exercise_of, grade_id, is_check

__all__ = ["GradeReport", "grade"]


@dataclass
class GradeReport:
    rows: list[Row]

    @property
    def status(self) -> int:
        """Exit status: 0, or 1 where a row needs a person."""
        return int(any(row.needs_review for row in self.rows))

    def print(self, out: Callable[[str], None] = print) -> None:
        for row in self.rows:
            out(str(row))
        waiting = sum(row.needs_review for row in self.rows)
        kept = sum(row.kept for row in self.rows)
        out(
            f"{len(self.rows)} submissions graded"
            + (f", {kept} of them before and unchanged since" if kept else "")
            + (f"; {waiting} of them need review" if waiting else "")
        )


def grade(
    course: Course,
    assignments: list[str] | None = None,
    students: list[str] | None = None,
    *,
    workers: int | None = None,
    confine: bool = True,
    again: bool = False,
    new_judge: Callable[[], contextlib.AbstractContextManager] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> GradeReport:
    """Grade what was handed in, and write autograded/ and the gradebook. Grading again gives the same rows.

    A grade is kept while answers, exercise, judge, backend and gradebook are the same; `again` grades all. So a run
    that was stopped goes on where it was. `assignments` and `students` choose some; `workers` judge at the same time
    (as many as processors). Every submission gets a row, however broken; CourseError is for a call that is itself
    wrong, and CannotJudge for an installation that misjudges known answers: then nothing is graded.
    """
    chosen = _chosen(course, assignments, students)
    graded_as = {a: graded_by(course, a, f"{this_backend()} {confine}") for _, a in chosen}
    with one_grader(course, progress), open_gradebook(course) as gradebook:
        register(course)
        rows = [] if again else _kept(course, gradebook, chosen, graded_as)
        names = {(row.student, row.assignment) for row in rows}
        todo = [submission for submission in chosen if submission not in names]
        if todo and new_judge is None:
            _prove(course, {assignment for _, assignment in todo}, confine)
        pool = JudgePool(
            min(workers or os.cpu_count() or 1, len(todo)), new_judge or functools.partial(Judge, confine)
        )
        began = time.monotonic()
        for done, row in enumerate(_judged(course, todo, pool), 1):
            by = {} if row.failed else {"by": graded_as[row.assignment]}
            save(course, gradebook, row, {**row.record(), **by})
            rows.append(row)
            left = (time.monotonic() - began) / done * (len(todo) - done)
            progress(f"[{done}/{len(todo)}] {row} ({row.seconds:.1f} s; {_duration(left)} left)")
    return GradeReport(sorted(rows, key=lambda row: (row.student, row.assignment)))


def _kept(
    course: Course, gradebook: Gradebook, chosen: list[tuple[str, str]], graded_as: dict[str, str]
) -> list[Row]:
    """The rows of earlier runs that would be graded in the same way again."""
    there = graded_in(gradebook)
    rows = []
    for student, assignment in chosen:
        record = record_of(course, student, assignment)
        if (student, assignment) not in there or record.get("by") != graded_as[assignment]:
            continue
        path = submitted_notebook(course, student, assignment)
        same = file_hash(path) == record["submitted"] or (record["answers"] and answers_hash(path) == record["answers"])
        if same:
            rows.append(Row.from_record(student, assignment, record))
    return rows


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _judged(course: Course, todo: list[tuple[str, str]], pool: JudgePool) -> Iterator[Row]:
    """A row for each submission, as they are done. Where no judge starts, nothing is graded."""

    def work(judge: SturdyJudge, names: tuple[str, str]) -> Row:
        return judge_submission(course, *names, judge)

    if not todo:
        return
    with scratch_folder(), pool, contextlib.closing(pool.each(work, todo)) as done:
        for _, row in done:
            yield row


def _chosen(
    course: Course, assignments: list[str] | None, students: list[str] | None
) -> list[tuple[str, str]]:
    there = course.handed_in()
    if not there:
        raise CourseError(
            f"{course.root / 'submitted'}: nothing was handed in; run `autograder collect` first"
        )
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


def _prove(course: Course, assignments: set[str], confine: bool) -> None:
    """CannotJudge before the first submission, and not an error in each of its rows."""
    cells = [cell for name in assignments & set(course.released) for cell in course.released[name]["cells"]]
    with Judge(confine) as judge:
        for exercise in {exercise_of(grade_id(cell)) for cell in filter(is_check, cells)} & set(EXERCISES):
            with contextlib.suppress(JaxMissing):  # its answers get rows that say so
                judge.prove(exercise)
