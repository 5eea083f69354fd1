"""Runs several judges in parallel, each with its own box, for batches of answers."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from typing import TypeVar

from ..exercises import UnknownExercise
from ..verdict import GRADER_ERROR, Verdict
from . import Judge
from .jax import JaxMissing

Item, Result = TypeVar("Item"), TypeVar("Result")
NewJudge = Callable[[], AbstractContextManager]  # makes a Judge, or another object with its method `judge`


class Stopped(Exception):
    """The batch ended before this answer was judged."""


_NO_FAULT = (JaxMissing, UnknownExercise, Stopped)  # a new judge would raise these too


class SturdyJudge:
    """A judge that is replaced by a new one after an error of the judge. The new one tries once more."""

    def __init__(self, new_judge: NewJudge = Judge) -> None:
        self._new_judge, self._stack, self._running = new_judge, contextlib.ExitStack(), None
        self._stopped = False

    def start(self) -> SturdyJudge:
        self._running = self._stack.enter_context(self._new_judge())
        return self

    def judge(self, exercise: str, source: str, *seed: int | None) -> Verdict:
        """As Judge.judge; an error is raised, or said in a verdict, only when two judges in a row had it."""
        try:
            verdict = self._judge(exercise, source, *seed)
        except _NO_FAULT:
            raise
        except Exception:
            return self._judge(exercise, source, *seed)
        if verdict.diagnosis != GRADER_ERROR:
            return verdict
        with contextlib.suppress(Exception):
            self.close()
        return self._judge(exercise, source, *seed)

    def _judge(self, exercise: str, source: str, *seed: int | None) -> Verdict:
        if self._stopped:
            raise Stopped("the batch was stopped")
        if self._running is None:
            self.start()
        try:
            return self._running.judge(exercise, source, *seed)
        except _NO_FAULT:
            raise
        except Exception:
            with contextlib.suppress(Exception):
                self.close()
            raise

    def stop(self) -> None:
        """Judge no further answer. The one that is being judged ends within its limits."""
        self._stopped = True

    def close(self) -> None:
        self._running = None
        self._stack.close()


class JudgePool:
    """A context manager that owns `size` judges. If one does not start, all are closed and its error is raised."""

    def __init__(self, size: int, new_judge: NewJudge = Judge) -> None:
        self._judges = [SturdyJudge(new_judge) for _ in range(max(size, 1))]
        self._idle: queue.SimpleQueue[SturdyJudge] = queue.SimpleQueue()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> JudgePool:
        with contextlib.ExitStack() as unless_started:
            for judge in self._judges:
                unless_started.callback(judge.close)
            self._threads = unless_started.enter_context(ThreadPoolExecutor(len(self._judges)))
            for judge in self._threads.map(SturdyJudge.start, self._judges):
                self._idle.put(judge)
            self._stack = unless_started.pop_all()
        return self

    def __exit__(self, *error) -> None:
        for judge in self._judges:
            judge.stop()
        self._stack.__exit__(*error)

    def each(
        self, work: Callable[[SturdyJudge, Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Yields (item, work(judge, item)) for each item, in the order in which the work finishes.

        If the caller stops early, no more work begins, and running work finishes first.
        """

        def lend(item: Item) -> Result:
            judge = self._idle.get()
            try:
                return work(judge, item)
            finally:
                self._idle.put(judge)

        waiting = {self._threads.submit(lend, item): item for item in items}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            for future in waiting:
                future.cancel()
