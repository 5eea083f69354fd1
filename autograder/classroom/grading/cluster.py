"""Judges a batch on a Dask cluster: `autograder run --cluster tcp://scheduler:8786`.

What travels is the text of an answer, one way, and its verdict, the other way. Nothing else is shared: a worker needs
this package, installed in the same version, and neither the course directory nor the gradebook. Dask brings the
workers of Slurm, Kubernetes and ssh (dask-jobqueue, dask-kubernetes, `dask ssh`).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator

from ...judge import Judge
from ...judge.pool import NewJudge, SturdyJudge
from ...text import visible
from ..course import Course, CourseError
from .here import prove
from .judging import Answer, Question, Row, answered, ask, read
from .record import Place, judge_version, place

DEATHS = 2  # workers that may die of a submission before it is failed
START_SECONDS = 60


class Cluster:
    """A context manager: the workers at an address, which judge as this package here would. Raises CourseError."""

    def __init__(self, address: str, confine: bool, new_judge: NewJudge | None = None) -> None:
        self._address, self._new_judge = address, new_judge or functools.partial(Judge, confine)
        self._prove = new_judge is None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Cluster:
        try:
            from distributed import Client
        except ImportError:
            raise CourseError(
                "--cluster needs Dask; install it: .venv/bin/pip install -c constraints.txt distributed"
            ) from None
        with contextlib.ExitStack() as unless_ready:
            try:
                client = Client(self._address, timeout=START_SECONDS, set_as_default=False)
                self._client = unless_ready.enter_context(client)
            except (OSError, ValueError, TypeError) as error:
                raise CourseError(f"{self._address}: no Dask scheduler answers: {visible(error, 200)}") from None
            places = _all_well(self._client.run(place, on_error="return"))
            if not places:
                raise CourseError(f"{self._address}: has no workers; start some: dask worker {self._address}")
            self.place = _common(places, self._address)
            self._resources = {"GPU": 1} if self.place.backend != "interpreter" else {}
            if self._resources and not self._slots():
                how = 'dask worker --nthreads 1 --resources "GPU=1"'
                raise CourseError(f"{self._address}: no worker says that it has a card; start one for each: {how}")
            unless_ready.enter_context(_allowed_deaths(self._client))
            self._stack = unless_ready.pop_all()
        return self

    def __exit__(self, *error) -> None:
        self._stack.__exit__(*error)

    def prove(self, exercises: set[str]) -> None:
        """CourseError before the first submission where a worker misjudges known answers."""
        if self._prove:
            _all_well(self._client.run(prove, self._new_judge, exercises, on_error="return"))

    def rows(self, course: Course, todo: list[tuple[str, str]]) -> Iterator[Row]:
        """A row for each submission, as they are done. No more are on their way than the workers have threads.

        So a worker that dies is blamed on what it was judging, and not on what waited for it.
        """
        from distributed import as_completed

        running: dict[object, Row] = {}
        done = as_completed(loop=self._client.loop)
        try:
            for row in (read(course, *names) for names in todo):
                if not row.questions:
                    yield answered(course, row, [], 0.0)
                    continue
                while len(running) >= self._slots():
                    if running:
                        yield _next(course, running, done)
                    else:
                        time.sleep(0.2)  # until there is a worker again
                future = self._client.submit(
                    judge_there, self.place.version, self._new_judge, row.questions, row.submission.cells,
                    pure=False, resources=self._resources or None,
                )  # fmt: skip
                running[future] = row
                done.add(future)
            while running:
                yield _next(course, running, done)
        finally:
            self._client.cancel(list(running))

    def _slots(self) -> int:
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(int(w["resources"].get("GPU", 0)) if self._resources else w["nthreads"] for w in workers)


def _all_well(answers: dict[str, object]) -> dict:
    """What workers answered, by address. CourseError for an exception among it."""
    for worker, answer in answers.items():
        if isinstance(answer, BaseException):
            problem = visible(f"{type(answer).__name__}: {answer}", 300)
            raise CourseError(f"the worker {worker} cannot judge: {problem}")
    return answers


def _common(places: dict[str, Place], address: str) -> Place:
    """What all workers say. CourseError where a grade would depend on the worker."""
    first, *others = dict.fromkeys(places.values())
    if others:
        listed = ", ".join(f"{worker} ({there.backend}, {there.version[:8]})" for worker, there in places.items())
        raise CourseError(f"{address}: its workers judge differently: {visible(listed, 500)}; use one kind of machine")
    return first


def _next(course: Course, running: dict[object, Row], done: Iterator) -> Row:
    """The row of the next submission that is done."""
    from distributed.scheduler import KilledWorker

    future = next(done)
    row = running.pop(future)
    try:
        seconds, answers = future.result()
        return answered(course, row, answers, seconds)
    except KilledWorker:
        return row.fail(f"{DEATHS} workers died while they judged it; it was not tried again")
    except Exception as error:
        return row.fail(error)


@contextlib.contextmanager
def _allowed_deaths(client) -> Iterator[None]:
    """Have the scheduler give a submission up after DEATHS workers, as long as this batch runs."""

    def change(count: int, dask_scheduler=None) -> int:
        before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, count
        return before

    before = client.run_on_scheduler(change, DEATHS - 1)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            client.run_on_scheduler(change, before)


# -- on a worker ------------------------------------------------------------------------------------------

_mine = threading.local()  # a judge for each thread: only one thread may use it
_stop_all: list[Callable[[], None]] = []
atexit.register(lambda: [stop() for stop in _stop_all])


def judge_there(
    version: str, new_judge: NewJudge, questions: list[Question], cells: list[dict]
) -> tuple[float, list[Answer]]:
    """Seconds and verdicts. Raises RuntimeError if this worker would judge differently."""
    if judge_version() != version:
        raise RuntimeError("the worker has another version of the judge, of torch or of Triton, or another card")
    if getattr(_mine, "judge", None) is None:
        _mine.judge = SturdyJudge(new_judge)
        _stop_all.append(_mine.judge.close)
    began = time.perf_counter()
    answers = ask(_mine.judge, questions, cells)
    return time.perf_counter() - began, answers
