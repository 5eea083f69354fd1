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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from ...answer import without_comments
from ...exercises import EXERCISES
from ...judge import Judge
from ...judge.jax import JaxMissing
from ...judge.pool import JudgePool, NewJudge, Stopped, SturdyJudge, cards, side_by_side, size_here
from ...text import visible
from ...verdict import Slug, Verdict
from ..course import Course, CourseError
from .judging import Place, Row, judge_submission, judge_version, place

DEATHS = 2  # workers that may die of an answer before it is failed
MOST = 256  # submissions that a cluster judges at the same time
START_SECONDS = 60
PREFIX = "autograder-"  # of a batch's folder for temporary files


def prove(new_judge: NewJudge, exercises: set[str]) -> None:
    """Raises CannotJudge where known answers get wrong verdicts."""
    with contextlib.closing(new_judge()) as judge:  # it starts its box where an answer must be judged
        for exercise in exercises & EXERCISES.keys():  # others are not of this package
            with contextlib.suppress(JaxMissing):  # its answers get rows that say so
                judge.prove(exercise)


class WorkersDied(Stopped):
    """An answer was given up, because it would end more workers."""


class Here:
    """What judges a batch: a pool of judges. Those of a Cluster judge elsewhere."""

    def __init__(self, workers: int | None, confine: bool, new_judge: NewJudge | None) -> None:
        """new_judge: makes each judge of the batch, in this process."""
        self._bound = cards() if new_judge is None else []
        self._workers, self._own = workers or size_here(self._bound), new_judge
        self._new_judge = new_judge or functools.partial(Judge, confine)

    def prove(self, exercises: set[str]) -> None:
        """CannotJudge before the first submission, and not an error in each of its rows."""
        prove(self._new_judge, exercises)

    def rows(self, course: Course, todo: list[tuple[str, str]]) -> Iterator[Row]:
        """A row for each submission, as they are done. Where no judge starts, nothing is graded."""
        known: dict[tuple[str, str], Verdict] = {}

        def work(judge: SturdyJudge, names: tuple[str, str]) -> Row:
            with self.turn():
                return judge_submission(course, *names, _OneVerdict(judge, known))

        pool = JudgePool(self.makers(len(todo)))
        with scratch_folder(), pool, contextlib.closing(self), contextlib.closing(pool.each(work, todo)) as done:
            for _, row in done:
                yield row

    def makers(self, count: int) -> list[NewJudge]:
        """What makes the judges of a batch of so many submissions."""
        size = min(self._workers, count)
        return [self._own] * size if self._own else side_by_side(self._new_judge, size, self._bound)

    def turn(self) -> contextlib.AbstractContextManager:
        """Around the judging of one submission."""
        return contextlib.nullcontext()

    def close(self) -> None:
        """Judge no further answer."""


@dataclass
class _OneVerdict:
    """A judge that judges a program once in a batch, whatever its comments: starters and copies get one verdict."""

    judge_of_new: SturdyJudge
    known: dict[tuple[str, str], Verdict]

    def judge(self, exercise: str, source: str) -> Verdict:
        source = without_comments(source)
        verdict = self.known.get((exercise, source)) or self.judge_of_new.judge(exercise, source)
        if verdict.diagnosis != Slug.GRADER_ERROR:
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


class Cluster(Here):
    def __init__(self, client, place: Place, confine: bool, new_judge: NewJudge | None) -> None:
        self.place, self._client = place, client
        self.resources = {"GPU": 1} if place.backend != "interpreter" else {}
        self._judge_there = new_judge or functools.partial(Judge, confine)
        self._first, self._change = threading.Lock(), threading.Condition()
        self._taken, self._running, self._closed = 0, set(), False

    def prove(self, exercises: set[str]) -> None:
        """CourseError before the first submission where a worker misjudges known answers."""
        _all_well(self._client.run(prove, self._judge_there, exercises, on_error="return"))

    def makers(self, count: int) -> list[NewJudge]:
        return [lambda: contextlib.nullcontext(self)] * min(MOST, count)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a free thread of a worker. One that dies is so blamed on what it judged, not on what waited."""
        with self._first, self._change:
            while self._taken >= self.slots() and not self._closed:
                self._change.wait(0.2)  # for another worker
            self._taken += 1
        try:
            yield
        finally:
            with self._change:
                self._taken -= 1
                self._change.notify()

    def judge(self, exercise: str, source: str) -> Verdict:
        """The verdict of a worker. Several threads ask for one at the same time."""
        from distributed.scheduler import KilledWorker

        if self._closed:
            raise Stopped("the batch was stopped")
        question = self.place.version, self._judge_there, exercise, source
        future = self._client.submit(judge_there, *question, pure=False, resources=self.resources or None)
        self._running.add(future)
        try:
            return future.result()
        except KilledWorker:
            raise WorkersDied(f"{DEATHS} workers died while they judged it; it was not tried again") from None
        finally:
            self._running.discard(future)

    def close(self) -> None:
        """Judge no further answer, and cancel what is on its way."""
        self._closed = True
        self._client.cancel(list(self._running))

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


# -- on a worker ------------------------------------------------------------------------------------------

_mine = threading.local()  # a judge for each thread: only one thread may use it
_stop_all: list[Callable[[], None]] = []
atexit.register(lambda: [stop() for stop in _stop_all])


def judge_there(version: str, new_judge: NewJudge, exercise: str, source: str) -> Verdict:
    """A worker's verdict. Raises RuntimeError if this worker would judge differently."""
    if judge_version() != version:
        raise RuntimeError("the worker has another version of the judge, of torch or of Triton, or another card")
    if getattr(_mine, "judge", None) is None:
        _mine.judge = SturdyJudge(new_judge)
        _stop_all.append(_mine.judge.close)
    return _mine.judge.judge(exercise, source)
