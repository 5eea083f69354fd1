"""The judges of this machine: one for each card or processor."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass

from ...answer import without_comments
from ...exercises import EXERCISES
from ...judge import Judge
from ...judge.jax import JaxMissing
from ...judge.pool import JudgePool, NewJudge, SturdyJudge, cards, size_here
from ...verdict import GRADER_ERROR, Verdict
from ..course import Course
from ..locks import scratch_folder
from .judging import Row, judge_submission


class Here:
    """What grading asks of a Cluster, too."""

    def __init__(self, workers: int | None, confine: bool, new_judge: NewJudge | None) -> None:
        self._workers, self._bound = workers, cards() if new_judge is None else []
        self._proves, self._new_judge = new_judge is None, new_judge or functools.partial(Judge, confine)

    def prove(self, exercises: set[str]) -> None:
        """CannotJudge before the first submission, and not an error in each of its rows."""
        if self._proves:
            prove(self._new_judge, exercises)

    def rows(self, course: Course, todo: list[tuple[str, str]]) -> Iterator[Row]:
        """A row for each submission, as they are done. Where no judge starts, nothing is graded."""
        known: dict[tuple[str, str], Verdict] = {}

        def work(judge: SturdyJudge, names: tuple[str, str]) -> Row:
            return judge_submission(course, *names, _OneVerdict(judge, known))

        pool = JudgePool(min(self._workers or size_here(self._bound), len(todo)), self._new_judge, self._bound)
        with scratch_folder(), pool, contextlib.closing(pool.each(work, todo)) as done:
            for _, row in done:
                yield row


def prove(new_judge: NewJudge, exercises: set[str]) -> None:
    """Raises CannotJudge where known answers get wrong verdicts."""
    with contextlib.closing(new_judge()) as judge:  # it starts its box where an answer must be judged
        for exercise in exercises & EXERCISES.keys():  # others are not of this package
            with contextlib.suppress(JaxMissing):  # its answers get rows that say so
                judge.prove(exercise)


@dataclass
class _OneVerdict:
    """A judge that judges a program once in a batch: starters, copies. So all who handed it in get one verdict.

    Comments do not count, and no verdict shows somebody else's.
    """

    judge_of_new: SturdyJudge
    known: dict[tuple[str, str], Verdict]

    def judge(self, exercise: str, source: str) -> Verdict:
        source = without_comments(source)
        verdict = self.known.get((exercise, source)) or self.judge_of_new.judge(exercise, source)
        if verdict.diagnosis != GRADER_ERROR:
            self.known[exercise, source] = verdict
        return verdict
