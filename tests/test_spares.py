"""Spares are handed one job each, die with their zygote, and a spare that failed to start costs no learner a point."""

import os
import socket

import pytest

from autograder.box.inside import zygote
from autograder.box.inside.zygote import COUNT, Spares, Zygote, wait_for_job
from autograder.box.wire import End, Settings, Start, from_json, to_json


def echo(own, scratch):
    """A child that answers its job with its scratch folder."""
    try:
        (answer,) = wait_for_job(own)
        os.write(answer, scratch.encode())
    finally:
        os._exit(0)


def fails(own, scratch):
    os._exit(1)


@pytest.fixture
def spares(tmp_path):
    spares = Spares(str(tmp_path), echo)
    yield spares
    spares.end()


def answer_of(spares):
    reading, writing = os.pipe()
    spare = spares.give([writing])
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    if spare:
        os.waitpid(spare.pid, 0)
    return spare, answer


def test_each_spare_runs_one_job(spares):
    spares.refill()
    pids = {spare.pid for spare in spares.waiting}
    assert len(pids) == COUNT
    seen = [answer_of(spares) for _ in range(COUNT)]
    assert {spare.pid for spare, _ in seen} == pids
    assert all(answer == spare.scratch for spare, answer in seen)
    assert answer_of(spares) == (None, "")
    spares.refill()
    assert not {spare.pid for spare in spares.waiting} & pids


def test_a_spare_that_could_not_start_is_passed_over(tmp_path):
    spares = Spares(str(tmp_path), fails)
    spares.refill()
    assert answer_of(spares) == (None, "")
    assert not os.listdir(tmp_path)


def test_a_spare_that_was_killed_is_passed_over(spares):
    spares.refill()
    first = spares.waiting[0]
    os.kill(first.pid, 9)
    os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)
    spare, answer = answer_of(spares)
    assert spare != first and answer == spare.scratch


def test_spares_end(spares):
    spares.refill()
    pids = {spare.pid for spare in spares.waiting}
    spares.end()
    assert not {spare.pid for spare in spares.waiting}
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_spare_ends_with_its_zygote(tmp_path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        echo(theirs, str(tmp_path))
    theirs.close()
    ours.recv(16)
    ours.close()
    assert os.waitpid(pid, 0)[0] == pid


def tells(settings, job, output, status, early=None):
    """A job that says in which process it ran, and whether that was a spare."""
    os.write(status, f"{os.getppid()} {bool(early)}".encode())


def test_the_zygote_gives_jobs_to_spares_and_to_branches(tmp_path, monkeypatch):
    monkeypatch.setattr(zygote, "run", tells)
    for name in ("build_launchers", "load_further", "name_endless_loops", "prepare_spare"):
        monkeypatch.setattr(zygote, name, lambda *_, **__: None)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            own = Zygote(Settings("cuda", False, str(tmp_path), 6 << 30, (), ()), theirs)
            own.start_spares()
            own.serve()
        finally:
            os._exit(0)
    theirs.close()

    def ran(kind: str) -> tuple[int, bool]:
        """The parent of the process that ran a job of this kind, and whether that was a spare."""
        reading, writing = os.pipe()
        nothing = [os.open(os.devnull, os.O_RDWR) for _ in range(2)]
        start = Start(kind, 5, 5, needs="jax" if kind == "jax-plan" else "")
        socket.send_fds(ours, [to_json(start)], [*nothing, writing])
        for descriptor in (*nothing, writing):
            os.close(descriptor)
        assert from_json(End, ours.recv(4096)).exit == 0
        parent, spare = os.read(reading, 100).decode().split()
        os.close(reading)
        return int(parent), spare == "True"

    assert [ran(kind) for kind in ("plan", "replay")] == [(pid, True), (pid, True)]
    branch, other = ran("jax-plan"), ran("jax-plan")
    assert branch == other and branch[0] != pid and not branch[1]
    assert len(os.listdir(tmp_path)) <= COUNT
    ours.close()
    assert os.waitpid(pid, 0) == (pid, 0)
