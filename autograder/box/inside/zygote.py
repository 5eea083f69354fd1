"""The zygote: the process that the judge starts, and the parent of every process that runs learners' code.

It imports torch and Triton once, then forks a child for each job. The child gives up its rights, runs one job and
ends. The zygote kills and reaps everything that the job left behind before it answers. It holds no reference, no
seed and no verdict.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import select
import shutil
import signal
import socket
import sys
import time

from ..wire.codec import from_json, to_json
from ..wire.requests import End, Settings, Start

PR_SET_CHILD_SUBREAPER = 36
IDLE_SECONDS = 10.0  # seconds without computing; even on a loaded machine, a process waits less than this
IDLE_SHARE = 0.005
MAX_WRITTEN = 4 << 30  # bytes on the disk of the scratch folder, or half of the free space if that is less


def main(descriptor: int) -> None:
    channel = socket.socket(fileno=descriptor)
    settings = from_json(Settings, channel.recv(65536))
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.environ["TRITON_INTERPRET"] = "1" if settings.backend == "interpreter" else "0"  # Triton reads it once
    from . import dispatch

    unchecked = dispatch.prepare(settings)
    channel.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 4096, 3)
        if not message:
            return
        start = from_json(Start, message)
        dispatch.prepare_for(start.kind)
        child = os.fork()
        if child == 0:
            channel.close()
            _child(dispatch, settings, unchecked, *descriptors)
        for fd in descriptors:
            os.close(fd)
        end = _wait(child, start.seconds, start.cpu_seconds, settings)
        _empty(settings.scratch)
        channel.send(to_json(end).encode())


def _child(dispatch, settings: Settings, unchecked: str, job: int, output: int, status: int) -> None:
    """Runs one job and never returns. Its only results are bytes in two descriptors and an exit status."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as preference:
        preference.write("1000")  # if memory runs out, the kernel must kill this process, not the judge
    try:
        dispatch.run(settings, unchecked, job, output, status)
    except BaseException as error:  # the judge must hear of every failure, whatever its class
        dispatch.report_failure(status, error)
    finally:
        os._exit(0)


def _wait(child: int, seconds: float, cpu_seconds: float, settings: Settings) -> End:
    """Waits until the child ends or has used too much time, memory or disk. Kills it and every process that it started.

    `End.exceeded` is "time" or "space", or None if the child ended by itself.
    """
    process = os.pidfd_open(child)
    begin = progress = time.monotonic()
    computed = 0.0
    free = shutil.disk_usage(settings.scratch).free
    ended = greedy = late = False
    while not (ended or greedy or late):
        ended = bool(select.select([process], [], [], 0.2)[0])
        now, used = time.monotonic(), _cpu_seconds(child)
        if used - computed > IDLE_SHARE * IDLE_SECONDS:
            progress, computed = now, used
        idle = cpu_seconds < math.inf and now - progress > IDLE_SECONDS
        late = idle or now - begin > seconds or used > cpu_seconds
        written = free - shutil.disk_usage(settings.scratch).free
        greedy = written > min(MAX_WRITTEN, free // 2) or sum(map(_resident, _children())) > settings.memory
    os.close(process)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    _kill_orphans()
    exceeded = None if ended else "space" if greedy else "time"
    return End(exceeded, os.waitstatus_to_exitcode(status))


def _cpu_seconds(pid: int) -> float:
    """The CPU time of a process. Unlike wall time, it does not depend on the load of the machine."""
    return time.clock_gettime(~pid << 3 | 2)  # Linux: the clock of all threads of a process


def _resident(pid: int) -> int:
    """Bytes of memory that a process and its descendants use, not what they reserve: a driver reserves much more."""
    try:
        with open(f"/proc/{pid}/statm") as pages:
            own = int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):  # it ended
        return 0
    return own + sum(map(_resident, _children(pid)))


def _kill_orphans():
    """Kills the processes that a job left behind. They are re-parented to this process, which is their subreaper.

    If they fork faster than we can kill them, we kill our own process group too.
    """
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        for pid in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)
    os.killpg(0, signal.SIGKILL)  # a signal to the group misses no process; the judge starts another box


def _empty(folder: str):
    for entry in os.scandir(folder):
        shutil.rmtree(entry.path, ignore_errors=True)


def _children(of: int | None = None) -> list[int]:
    pid = of or os.getpid()
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            return [int(pid) for pid in children.read().split()]
    except OSError:  # this kernel does not have the file, or /proc is hidden: waitpid still reaps children
        return []


if __name__ == "__main__":
    main(int(sys.argv[1]))
