"""The zygote: the process that the judge starts, and the parent of every process that runs learners' code.

It imports torch and Triton once, then forks a child for each job. The child gives up its rights, runs one job and
ends. The zygote kills and reaps everything that the job left behind before it answers. It holds no reference, no
seed and no verdict.
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

from ..wire.codec import from_json, to_json
from ..wire.requests import PATIENCE, End, Settings, Start
from .charge import CHILDREN, Charge, children
from .spares import IDLE_SECONDS, PLANS, Spares, wait_for_job

PR_SET_CHILD_SUBREAPER = 36
MAX_WRITTEN = 4 << 30  # bytes on the disk of the scratch folder, or half of the free space if that is less


def main(descriptor: int) -> None:
    channel = socket.socket(fileno=descriptor)
    settings = from_json(Settings, channel.recv(65536))
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.environ["TRITON_INTERPRET"] = "1" if settings.backend == "interpreter" else "0"  # workshop reads it once
    from workshop import collector

    with collector.paused():
        from . import dispatch

        dispatch.prepare(settings)
        child = functools.partial(_child, dispatch, settings, channel)
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
        dispatch.prepare_for(start.kind, start.operators, settings)
        spare = spares.give(descriptors) if start.kind in dispatch.EARLY and not start.operators else None
        pid = spare.pid if spare else os.fork()
        if pid == 0:
            dispatch.name_endless_loops(start.seconds)
            child(descriptors)
        for fd in descriptors:
            os.close(fd)
        if has_spares and start.kind != "tune":  # the start of a driver would disturb its measurements
            spares.refill()
        dispatch.build_launchers(start.launchers, settings)
        end = _wait(pid, start.seconds, start.cpu_seconds, settings, spares.pids)
        _empty(settings.scratch, spares.folders | {dispatch.launchers_of(settings)})
        channel.send(to_json(end).encode())


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


def _wait(child: int, seconds: float, cpu_seconds: float, settings: Settings, spares: set[int]) -> End:
    """Waits until the child ends or has used too much time, memory or disk. Kills it and every process that it started.

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
        if written > min(MAX_WRITTEN, free // 2) or sum(map(_resident, set(children()) - spares)) > settings.memory:
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
    _kill_orphans(spares)
    return End(None if ended else exceeded, os.waitstatus_to_exitcode(status), charge.seconds)


def _resident(pid: int) -> int:
    """Bytes of memory that a process and its descendants use, not what they reserve: a driver reserves much more."""
    try:
        with open(f"/proc/{pid}/statm") as pages:
            own = int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):  # it ended
        return 0
    return own + sum(map(_resident, children(pid)))


def _kill_orphans(spares: set[int]):
    """Kills the processes that a job left behind. They are re-parented to this process, which is their subreaper.

    If they fork faster than we can kill them, we kill our own process group too.
    """
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        for pid in set(children()) - spares:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if spares and not set(children()) - spares:
            return
        time.sleep(0.005)
    os.killpg(0, signal.SIGKILL)  # a signal to the group misses no process; the judge starts another box


def _empty(folder: str, kept: set[str]):
    for entry in os.scandir(folder):
        if entry.path not in kept:
            shutil.rmtree(entry.path, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
