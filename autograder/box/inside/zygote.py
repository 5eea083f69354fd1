"""The zygote: the process that the judge starts, and the parent of every process that runs learners' code.

It imports torch and Triton once, then forks a child for each job. The child gives up its rights, runs one job and
ends. The zygote kills and reaps everything that the job left behind before it answers. It holds no reference, no
seed and no verdict.

Jobs that need more modules, such as JAX, have a branch: a zygote of their own, which this one forks. No other job sees
these modules, so a verdict does not depend on what the box has judged before.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable

from ..wire.codec import from_json, to_json
from ..wire.requests import PATIENCE, End, Settings, Start
from .charge import CHILDREN, Charge, children
from .spares import IDLE_SECONDS, PLANS, Spares, wait_for_job

PR_SET_CHILD_SUBREAPER = 36
MAX_WRITTEN = 4 << 30  # bytes on the disk of the scratch folder, or half of the free space if that is less


def main(descriptor: int) -> None:
    channel = socket.socket(fileno=descriptor)
    settings = from_json(Settings, channel.recv(65536))
    _adopt_orphans()
    os.environ["TRITON_INTERPRET"] = "1" if settings.backend == "interpreter" else "0"  # workshop reads it once
    from workshop import collector

    with collector.paused():
        from . import dispatch

        dispatch.prepare(settings)
    child = functools.partial(_child, dispatch, settings, channel)
    branches: dict[str, Branch] = {}
    spares = Spares(settings.scratch, lambda own, scratch: child(own=own, scratch=scratch))
    has_spares = settings.backend != "interpreter" and os.path.exists(CHILDREN.format(os.getpid()))
    if has_spares:
        spares.refill(PLANS)
    dispatch.warm_compiler(settings)
    channel.send(b"ready")
    while True:
        if has_spares:
            spares.refill()
            if not select.select([channel], [], [], IDLE_SECONDS)[0]:
                spares.end()
        message, descriptors, _, _ = socket.recv_fds(channel, 4096, 3)
        if not message:
            return
        start = from_json(Start, message)
        if modules := dispatch.further_modules(start.kind, start.operators):
            if modules not in branches:
                branches[modules] = Branch(modules, dispatch, settings, channel)
            answer = branches[modules].answer(message, descriptors)
        else:
            spare = spares.give(descriptors) if start.kind in dispatch.EARLY else None
            pid = spare.pid if spare else _started(dispatch, start, child, descriptors)
            if has_spares and start.kind != "tune":  # the start of a driver would disturb its measurements
                spares.refill()
            dispatch.build_launchers(start.launchers, settings)
            others = spares.pids | {branch.pid for branch in branches.values()}
            answer = _wait(pid, start.seconds, start.cpu_seconds, settings, others)
        for fd in descriptors:
            os.close(fd)
        _empty(settings.scratch, spares.folders | {dispatch.launchers_of(settings)})
        channel.send(answer)


class Branch:
    """A process that is forked from the zygote, loads more modules, and runs the jobs that need them as it does."""

    def __init__(self, modules: str, dispatch, settings: Settings, zygote: socket.socket):
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            zygote.close()
            self.channel.close()
            try:
                _run_branch(modules, dispatch, settings, theirs)
            finally:
                os._exit(0)
        theirs.close()

    def answer(self, message: bytes, descriptors: list[int]) -> bytes:
        """What the zygote answers. Empty if the branch has ended, which ends the box."""
        socket.send_fds(self.channel, [message], descriptors)
        return self.channel.recv(4096)


def _run_branch(modules: str, dispatch, settings: Settings, channel: socket.socket) -> None:
    _adopt_orphans()
    with dispatch.collector.paused():
        dispatch.load_further(modules, settings)
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 4096, 3)
        if not message:
            return
        start = from_json(Start, message)
        pid = _started(dispatch, start, functools.partial(_child, dispatch, settings, channel), descriptors)
        for fd in descriptors:
            os.close(fd)
        dispatch.build_launchers(start.launchers, settings)
        channel.send(_wait(pid, start.seconds, start.cpu_seconds, settings, set()))


def _adopt_orphans() -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _started(dispatch, start: Start, child: Callable, descriptors: list[int]) -> int:
    """The process id of a new child that runs a job."""
    pid = os.fork()
    if pid == 0:
        dispatch.name_endless_loops(start.seconds)
        child(descriptors)
    return pid


def _child(dispatch, settings, channel, descriptors=(), own=None, scratch=None) -> None:
    """Runs one job and never returns. Its only results are bytes in two descriptors and an exit status.

    descriptors: of the job. A spare has a channel of its `own` instead, from which they will come, and its `scratch`.
    """
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as preference:
        preference.write("1000")  # if memory runs out, the kernel must kill this process, not the judge
    try:
        channel.close()
        if own:
            dispatch.prepare_spare(settings, scratch, keep=own.fileno())
            descriptors = wait_for_job(own)
        dispatch.run(settings, *descriptors, early=scratch)
    except BaseException as error:  # the judge must hear of every failure, whatever its class
        if descriptors:
            dispatch.report_failure(descriptors[-1], error)
    finally:
        os._exit(0)


def _wait(child: int, seconds: float, cpu_seconds: float, settings: Settings, others: set[int]) -> bytes:
    """Waits until the child ends or has used too much time, memory or disk. Kills it and every process that it started.

    others: children that have nothing to do with it. Returns an End for the judge.

    `End.exceeded` is "time" or "space", or None if the child ended by itself. It is "load" if the machine did not run
    the child for so long that nobody can say whether it needs too much time.
    """
    process = os.pidfd_open(child)
    begin, charge = time.monotonic(), Charge(child)
    free = shutil.disk_usage(settings.scratch).free
    exceeded, ended = None, False
    while not exceeded and not (ended := bool(select.select([process], [], [], 0.2)[0])):
        charge.update()
        written = free - shutil.disk_usage(settings.scratch).free
        if written > min(MAX_WRITTEN, free // 2) or sum(map(_resident, set(children()) - others)) > settings.memory:
            exceeded = "space"
        elif charge.seconds > seconds or charge.computed > cpu_seconds:
            exceeded = "time"
        elif time.monotonic() - begin > PATIENCE * seconds:
            exceeded = "load"
    charge.update()
    os.close(process)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    _kill_orphans(others)
    return to_json(End(None if ended else exceeded, os.waitstatus_to_exitcode(status), charge.seconds)).encode()


def _resident(pid: int) -> int:
    """Bytes of memory that a process and its descendants use, not what they reserve: a driver reserves much more."""
    try:
        with open(f"/proc/{pid}/statm") as pages:
            own = int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):  # it ended
        return 0
    return own + sum(map(_resident, children(pid)))


def _kill_orphans(others: set[int]):
    """Kills the processes that a job left behind. They are re-parented to this process, which is their subreaper.

    If they fork faster than we can kill them, we kill our own process group too.
    """
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        for pid in set(children()) - others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if others and not set(children()) - others:
            return
        time.sleep(0.005)
    os.killpg(0, signal.SIGKILL)  # a signal to the group misses no process; the judge starts another box


def _empty(folder: str, kept: set[str]):
    for entry in os.scandir(folder):
        if entry.path not in kept:
            shutil.rmtree(entry.path, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
