"""Grades what was collected: many judges side by side, one row a submission.

    submitted/ ──grade──▶ autograded/ + gradebook.db ──feedback──▶ feedback/
                                                     ──export────▶ grades.csv, exercises.csv
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..exercises import EXERCISES
from ..judge import Judge
from ..judge.jax import JaxMissing
from ..judge.pool import JudgePool, SturdyJudge
from .course import Course, CourseError, word
from .export import export
from .feedback import feedback
from .gradebook import open_gradebook, register, save
from .judging import Row, judge_submission
from .submission import exercise_of, grade_id, is_check

__all__ = ["GradeReport", "export", "feedback", "grade"]


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
        out(f"{len(self.rows)} submissions graded" + (f"; {waiting} of them need review" if waiting else ""))


def grade(
    course: Course,
    assignments: list[str] | None = None,
    students: list[str] | None = None,
    *,
    workers: int | None = None,
    confine: bool = True,
    new_judge: Callable[[], contextlib.AbstractContextManager] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> GradeReport:
    """Grade what was handed in, and write autograded/ and the gradebook. Grading again gives the same rows.

    `assignments` and `students` choose some; `workers` judge at the same time (as many as processors). Every
    submission gets a row, however broken; CourseError is for a call that is itself wrong, and CannotJudge for an
    installation that misjudges known answers: then nothing is graded.
    """
    todo = _chosen(course, assignments, students)
    if new_judge is None:
        _prove(course, {assignment for _, assignment in todo}, confine)
    workers = min(workers or os.cpu_count() or 1, len(todo))
    rows = []
    with open_gradebook(course) as gradebook:
        register(course)
        pool = JudgePool(workers, new_judge or functools.partial(Judge, confine))
        for row in _judged(course, todo, pool):
            save(course, gradebook, row)
            rows.append(row)
            progress(f"[{len(rows)}/{len(todo)}] {row} ({row.seconds:.1f} s)")
    return GradeReport(sorted(rows, key=lambda row: (row.student, row.assignment)))


def _judged(course: Course, todo: list[tuple[str, str]], pool: JudgePool) -> Iterator[Row]:
    """A row for each submission, as they are done. Where no judge starts, nothing is graded."""
    def work(judge: SturdyJudge, names: tuple[str, str]) -> Row:
        return judge_submission(course, *names, judge)

    with pool, contextlib.closing(pool.each(work, todo)) as done:
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
