"""Runs several judges in parallel, each with its own box, for batches of answers.

Each of them is a process of its own: a judge compares and explains in Python, where threads wait for one another. With
several cards each process sees one card only, so that no two answers are timed on the same card.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import queue
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from typing import TypeVar
from unittest import mock

from ..exercises import UnknownExercise
from ..verdict import GRADER_ERROR, Verdict
from . import BoxError, Judge, this_backend
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
        for is_last in (False, True):
            if self._stopped:
                raise Stopped("the batch was stopped")
            try:
                if self._running is None:
                    self.start()
                verdict = self._running.judge(exercise, source, *seed)
                if is_last or verdict.diagnosis != GRADER_ERROR:
                    return verdict
            except _NO_FAULT:
                raise
            except Exception as error:
                failed = error
            with contextlib.suppress(Exception):
                self.close()
        raise failed

    def stop(self) -> None:
        """Judge no further answer. The one that is being judged ends within its limits."""
        self._stopped = True

    def close(self) -> None:
        self._running = None
        self._stack.close()


Card = dict[str, str]  # the environment of a process that sees this card only
_one_change = threading.Lock()  # of this process's environment


def cards() -> list[Card]:
    """The cards that judges can be bound to here; empty where kernels run on the executor."""
    backend = this_backend()
    if backend == "interpreter":
        return []
    import torch

    name = "HIP_VISIBLE_DEVICES" if backend == "hip" else "CUDA_VISIBLE_DEVICES"
    chosen = [device.strip() for device in os.environ.get(name, "").split(",") if device.strip()]
    return [{name: device} for device in chosen or map(str, range(torch.cuda.device_count()))]


def size_here(bound: Sequence[Card]) -> int:
    """How many judges work side by side unless somebody says it: one per card, or one per processor without cards."""
    return len(bound) or os.cpu_count() or 1


def side_by_side(new_judge: NewJudge, size: int, bound: Sequence[Card] = ()) -> list[NewJudge]:
    """What makes each of `size` judges: in a process of its own, unless it is the only one.

    bound: cards. Each judge sees another one of them, and there are no more judges than cards.
    """
    size = max(min(size, len(bound)) if bound else size, 1)
    if size == 1:
        return [new_judge]
    return [functools.partial(JudgeProcess, new_judge, card) for card in bound[:size] or [{}] * size]


class JudgeProcess:
    """A judge in a process of its own. A context manager with the method `judge`."""

    def __init__(self, new_judge: NewJudge, card: Card) -> None:
        """new_judge: can be pickled."""
        self._new_judge, self._card = new_judge, card

    def __enter__(self) -> JudgeProcess:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs, self._new_judge))
        # The process gets this environment before its first import asks for a card.
        with _one_change, mock.patch.dict(os.environ, self._card, TMPDIR=tempfile.gettempdir()):
            self._process.start()
        theirs.close()
        try:
            self._receive()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error) -> None:
        self._pipe.close()  # the process ends itself, and its boxes
        self._process.join(30)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def judge(self, exercise: str, source: str, seed: int | None = None) -> Verdict:
        try:
            self._pipe.send((exercise, source, seed))
        except OSError:
            raise BoxError(f"the judge's process ended, with status {self._process.exitcode}") from None
        return self._receive()

    def _receive(self) -> Verdict:
        try:
            good, found = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(5)
            raise BoxError(f"the judge's process ended, with status {self._process.exitcode}") from None
        if not good:
            raise found
        return found


def _serve(pipe, new_judge: NewJudge) -> None:
    """The other end of a JudgeProcess: answers until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the batch's own process hears Ctrl-C, and closes the pipe
    with contextlib.suppress(EOFError, OSError):
        try:
            with new_judge() as judge:
                pipe.send((True, None))
                while True:
                    question = pipe.recv()
                    try:
                        pipe.send((True, judge.judge(*question)))
                    except (EOFError, OSError):
                        raise
                    except Exception as error:
                        pipe.send((False, error))
        except Exception as error:
            pipe.send((False, error))


class JudgePool:
    """A context manager that owns judges. If one does not start, all are closed and its error is raised."""

    def __init__(self, makers: Sequence[NewJudge]) -> None:
        self._judges = [SturdyJudge(new_judge) for new_judge in makers]
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
