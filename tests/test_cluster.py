"""Grading on a Dask cluster of separate processes. Skipped where Dask is absent (`make test` installs it)."""

import os
import signal
import sys
import threading
import time

import pytest
from classroom import EXERCISES, RIGHT, StrawJudge, filled, new_course, submit

from autograder import cli
from autograder.classroom.course import CourseError
from autograder.classroom.grading import judges as module
from autograder.classroom.grading.grade import grade
from autograder.classroom.grading.judges import Place, on_cluster

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
ADD, SOFTMAX = EXERCISES


class Worker(StrawJudge):
    """Says where it judged; dies, or takes its time, when the answer says so."""

    def judge(self, exercise, source):
        if "die" in source:
            os.kill(os.getpid(), signal.SIGKILL)
        if "slow" in source:
            time.sleep(0.5)
            source = source.replace("slow", "right")
        if "where" in source:
            raise RuntimeError(f"at {os.getpid()} {os.getcwd()}")
        return super().judge(exercise, source)


class OneAtATime(Worker):
    """Counts who judges at the same time."""

    now, most = threading.Semaphore(0), []

    def judge(self, exercise, source):
        self.now.release()
        self.most.append(self.now._value)
        time.sleep(0.1)
        self.now.acquire()
        return super().judge(exercise, source)


@pytest.fixture(scope="module")
def scheduler():
    """The address of a scheduler with two workers, each a process; one that dies is started again.

    A worker is a fork of a process that has imported what takes long.
    """
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        imported = ["distributed", "pytest", module.__name__, grade.__module__]
        distributed.utils.get_mp_context().set_forkserver_preload(imported)
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as made:
            yield made.scheduler_address


@pytest.fixture
def course(tmp_path):
    return new_course(tmp_path / "course")


def workers_of(scheduler):
    with distributed.Client(scheduler, set_as_default=False) as client:
        return client.run(os.getpid)


def test_a_batch_is_judged_by_other_processes(course, scheduler):
    for n in range(6):
        submit(course, f"s{n}", filled(ADD, **RIGHT))
    submit(course, "half", filled(ADD, vector_add="half"))
    submit(course, "page", b"<html>")
    submit(course, "where", filled(ADD, vector_add="where"))
    submit(course, "other", filled(SOFTMAX, naive_softmax="right"), SOFTMAX)
    report = grade(course, cluster=scheduler, new_judge=Worker)
    rows = {row.student: row for row in report.rows}
    assert [rows[f"s{n}"].score for n in range(6)] == [8] * 6
    assert (rows["half"].score, rows["other"].score) == (2.5, 4)
    assert rows["page"].needs_review and "not a notebook" in rows["page"].notes[0]
    assert int(rows["where"].notes[0].split(" at ")[1].split()[0]) in workers_of(scheduler).values()
    assert all(row.kept for row in grade(course, cluster=scheduler, new_judge=Worker).rows if row.student != "where")


def test_a_worker_that_is_killed_loses_nothing(course, scheduler):
    for n in range(12):
        submit(course, f"s{n:02}", filled(ADD, vector_add="slow", bug_hunt="right"))
    killed = []

    def kill_one(line):
        if not killed:
            killed.append(next(iter(workers_of(scheduler).values())))
            os.kill(killed[0], signal.SIGKILL)

    report = grade(course, cluster=scheduler, new_judge=Worker, progress=kill_one)
    assert killed and len(report.rows) == 12
    assert {(row.score, row.needs_review) for row in report.rows} == {(8, False)}


def test_what_kills_two_workers_is_failed_with_that_reason(course, scheduler):
    submit(course, "ann", filled(ADD, vector_add="die"))
    for n in range(6):
        submit(course, f"s{n}", filled(ADD, **RIGHT))
    before = set(workers_of(scheduler).values())
    report = grade(course, cluster=scheduler, new_judge=Worker)
    rows = {row.student: row for row in report.rows}
    assert rows["ann"].needs_review and rows["ann"].score == 0
    [note] = rows["ann"].notes
    assert note.startswith("vector_add: ") and "2 workers died while they judged it; it was not tried again" in note
    assert {row.score for row in report.rows if row.student != "ann"} == {8}
    deadline = time.monotonic() + 60
    while len(after := set(workers_of(scheduler).values())) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert len(before - after) == 2  # and no third
    with distributed.Client(scheduler, set_as_default=False) as client:  # a shared scheduler is as it was
        assert client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.allowed_failures) == 3


def test_who_stops_early_leaves_nothing_on_the_cluster(course, scheduler):
    for n in range(10):
        submit(course, f"s{n}", filled(ADD, vector_add="slow"))
    with on_cluster(scheduler, True, Worker) as far:
        rows = far.rows(course, course.handed_in())
        next(rows)
        rows.close()
    with distributed.Client(scheduler, set_as_default=False) as client:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and any(client.processing().values()):
            time.sleep(0.1)
        assert not any(client.processing().values())


def test_where_there_is_no_cluster_one_line_says_so(course, monkeypatch, capsys):
    monkeypatch.setattr(module, "START_SECONDS", 1)
    submit(course, "ann", filled(ADD, **RIGHT))
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        assert cli.main(["grade", "--course", str(course.root), "--cluster", address]) == 2
        said = capsys.readouterr().err
        assert "no Dask scheduler answers" in said and said.count("\n") == 1
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1") as empty,
        pytest.raises(CourseError, match="has no workers"),
    ):
        grade(course, cluster=empty.scheduler_address, new_judge=Worker)


def test_without_dask_one_line_says_what_to_install(course, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    submit(course, "ann", filled(ADD, **RIGHT))
    with pytest.raises(CourseError, match="--cluster needs Dask; install it: "):
        grade(course, cluster="tcp://127.0.0.1:1", new_judge=Worker)


def test_workers_that_would_judge_differently_are_refused():
    ours = Place("aaaa", "interpreter")
    assert module._common({"a": ours, "b": ours}, "tcp://x") == ("aaaa", "interpreter")
    for other in (Place("bbbb", "interpreter"), Place("aaaa", "cuda")):
        with pytest.raises(CourseError, match="judge differently"):
            module._common({"a": ours, "b": other}, "tcp://x")
    with pytest.raises(CourseError, match="the worker b cannot judge: ImportError: no torch"):
        module._all_well({"a": ours, "b": ImportError("no torch")})
    with pytest.raises(RuntimeError, match="another version of the judge"):
        module.judge_there("other", Worker, "vector_add", "")


@pytest.mark.parametrize("declared", [False, True])
def test_with_cards_a_worker_says_that_it_has_one(declared, course, monkeypatch):
    """Timed exercises never share a card: no more answers are on their way than cards."""
    monkeypatch.setattr(module, "place", lambda: Place(module.judge_version(), "cuda"))
    submit(course, "ann", filled(ADD, **RIGHT))
    submit(course, "bob", filled(ADD, **RIGHT))
    resources = {"GPU": 1} if declared else {}
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=4, processes=False, dashboard_address=None, resources=resources
    ) as made:
        if not declared:
            with pytest.raises(CourseError, match="no worker says that it has a card"):
                grade(course, cluster=made.scheduler_address, new_judge=Worker)
            return
        report = grade(course, cluster=made.scheduler_address, new_judge=OneAtATime)
        assert [row.score for row in report.rows] == [8, 8] and max(OneAtATime.most) == 1
