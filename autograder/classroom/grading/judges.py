"""Who judges a batch: this machine, with a judge for each card or processor, or a Dask cluster.

    autograder run --cluster tcp://scheduler:8786

To a cluster travels the text of an answer, and back its verdict. Nothing else is shared: a worker needs this package,
installed in the same version, and neither the course directory nor the gradebook. Dask brings the workers of Slurm,
Kubernetes and ssh (dask-jobqueue, dask-kubernetes, `dask ssh`).
"""

import atexit
import contextlib
import fcntl
import functools
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from ...answer import without_comments
from ...exercises import EXERCISES
from ...judge import Judge
from ...judge.jax import JaxMissing
from ...judge.pool import JudgePool, NewJudge, SturdyJudge, cards, size_here
from ...text import visible
from ...verdict import GRADER_ERROR, Verdict
from ..course import Course, CourseError
from .judging import Answer, Place, Question, Row, answered, ask, judge_submission, judge_version, place, read

DEATHS = 2  # workers that may die of a submission before it is failed
START_SECONDS = 60
PREFIX = "autograder-"  # of a batch's folder for temporary files


def prove(new_judge: NewJudge, exercises: set[str]) -> None:
    """Raises CannotJudge where known answers get wrong verdicts."""
    with contextlib.closing(new_judge()) as judge:  # it starts its box where an answer must be judged
        for exercise in exercises & EXERCISES.keys():  # others are not of this package
            with contextlib.suppress(JaxMissing):  # its answers get rows that say so
                judge.prove(exercise)


class Here:
    """What judges a batch. A Cluster is asked the same."""

    def __init__(self, workers: int | None, confine: bool, new_judge: NewJudge | None) -> None:
        self._workers, self._bound = workers, cards() if new_judge is None else []
        self._new_judge = new_judge or functools.partial(Judge, confine)

    def prove(self, exercises: set[str]) -> None:
        """CannotJudge before the first submission, and not an error in each of its rows."""
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


@dataclass
class _OneVerdict:
    """A judge that judges a program once in a batch, whatever its comments: starters and copies get one verdict."""

    judge_of_new: SturdyJudge
    known: dict[tuple[str, str], Verdict]

    def judge(self, exercise: str, source: str) -> Verdict:
        source = without_comments(source)
        verdict = self.known.get((exercise, source)) or self.judge_of_new.judge(exercise, source)
        if verdict.diagnosis != GRADER_ERROR:
            self.known[exercise, source] = verdict
        return verdict


@contextlib.contextmanager
def scratch_folder() -> Iterator[None]:
    """Keep all temporary files of this process in one folder, and remove those of graders that were killed."""
    parent = Path(tempfile.gettempdir())
    for left in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's, or its grader is alive: only a living one holds the lock
            if not left.is_symlink() and (left / ".lock").is_file():
                with (left / ".lock").open("r") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent, ignore_cleanup_errors=True) as folder,
        (Path(folder) / ".lock").open("w") as lock,
        mock.patch.object(tempfile, "tempdir", folder),
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Cluster:
    def __init__(self, client, place: Place, confine: bool, new_judge: NewJudge | None) -> None:
        self.place, self._client = place, client
        self._new_judge = new_judge or functools.partial(Judge, confine)
        self.resources = {"GPU": 1} if place.backend != "interpreter" else {}

    def prove(self, exercises: set[str]) -> None:
        """CourseError before the first submission where a worker misjudges known answers."""
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
                while len(running) >= self.slots():
                    if running:
                        yield _next(course, running, done)
                    else:
                        time.sleep(0.2)  # until there is a worker again
                future = self._client.submit(
                    judge_there, self.place.version, self._new_judge, row.questions, row.submission.cells,
                    pure=False, resources=self.resources or None,
                )  # fmt: skip
                running[future] = row
                done.add(future)
            while running:
                yield _next(course, running, done)
        finally:
            self._client.cancel(list(running))

    def slots(self) -> int:
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(int(w["resources"].get("GPU", 0)) if self.resources else w["nthreads"] for w in workers)


@contextlib.contextmanager
def on_cluster(address: str, confine: bool, new_judge: NewJudge | None = None) -> Iterator[Cluster]:
    """The workers at an address, which judge as this package here would. Raises CourseError."""
    try:
        from distributed import Client
    except ImportError:
        needed = "install it: .venv/bin/pip install -c constraints.txt distributed"
        raise CourseError(f"--cluster needs Dask; {needed}") from None
    try:
        client = Client(address, timeout=START_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise CourseError(f"{address}: no Dask scheduler answers: {visible(error, 200)}") from None
    with client:
        places = _all_well(client.run(place, on_error="return"))
        if not places:
            raise CourseError(f"{address}: has no workers; start some: dask worker {address}")
        judges = Cluster(client, _common(places, address), confine, new_judge)
        if judges.resources and not judges.slots():
            how = 'dask worker --nthreads 1 --resources "GPU=1"'
            raise CourseError(f"{address}: no worker says that it has a card; start one for each: {how}")

        def allow(deaths: int, dask_scheduler=None) -> int:
            before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, deaths
            return before

        before = client.run_on_scheduler(allow, DEATHS - 1)
        try:
            yield judges
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                client.run_on_scheduler(allow, before)


def _all_well(answers: dict[str, object]) -> dict:
    """What workers answered, by address. CourseError for an exception among it."""
    for worker, error in answers.items():
        if isinstance(error, BaseException):
            problem = visible(f"{type(error).__name__}: {error}", 300)
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
