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
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..wire import PATIENCE, End, Report, Settings, Start, from_json, to_json

PR_SET_CHILD_SUBREAPER, MADV_COLLAPSE = 36, 25
LARGE_PAGE = 2 << 20  # bytes
MAX_WRITTEN = 4 << 30  # bytes on the disk of the scratch folder, or half of the free space if that is less
UNKNOWN_LOAD = 1 / 3  # of the time that passes is charged at least, where the kernel does not say who waits
CHILDREN = "/proc/{0}/task/{0}/children"
PLANS, COUNT = 2, 3  # a check begins with two plans, which compile nothing, and a replay
IDLE_SECONDS = 300.0  # then spares end, because each holds some hundred megabytes of the GPU's memory
READY = b"ready"


def main(descriptor: int) -> None:
    channel = socket.socket(fileno=descriptor)
    settings = from_json(Settings, channel.recv(65536))
    from workshop.backend import uncollected

    with uncollected():
        from . import dispatch

        dispatch.prepare(settings)
    zygote = Zygote(dispatch, settings, channel)
    if settings.backend != "interpreter" and os.path.exists(CHILDREN.format(os.getpid())):
        zygote.start_spares()
    dispatch.warm_compiler(settings)
    use_large_pages()
    channel.send(READY)
    zygote.serve()


def use_large_pages() -> None:
    """Puts this process's own memory into large pages, as far as Linux can (since 6.1).

    A fork copies an entry for each page, and so does the end of the child: 40,000 small ones took 8 ms of each job.
    """
    call = ctypes.CDLL(None).madvise
    call.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    with open("/proc/self/maps") as maps:
        regions = [line.split() for line in maps]
    for ends, rights, _, _, inode, *_ in regions:
        begin, end = (int(each, 16) for each in ends.split("-"))
        if inode == "0" and rights.startswith("rw"):
            for page in range(-(-begin // LARGE_PAGE) * LARGE_PAGE, end - LARGE_PAGE + 1, LARGE_PAGE):
                call(page, LARGE_PAGE, MADV_COLLAPSE)  # refused where a large page is nowhere free


class Zygote:
    """Runs the jobs that come through `channel`. loaded: the further modules that it has, see Start."""

    def __init__(self, dispatch, settings: Settings, channel: socket.socket, loaded: str = ""):
        self.dispatch, self.settings, self.channel, self.loaded = dispatch, settings, channel, loaded
        self.branches: dict[str, Child] = {}
        self.spares = Spares(settings.scratch)

    def start_spares(self) -> None:
        self.spares.start = lambda own, scratch: self.child(own=own, scratch=scratch)
        self.spares.refill(PLANS)

    def serve(self) -> None:
        """Answers each Start with an End, until the channel is closed."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        while True:
            self.spares.refill()
            if not select.select([self.channel], [], [], IDLE_SECONDS)[0]:
                self.spares.end()
            message, descriptors, _, _ = socket.recv_fds(self.channel, 4096, 3)
            if not message:
                return
            answer = self._answer(message, descriptors)
            for fd in descriptors:
                os.close(fd)
            self.channel.send(answer)

    def _answer(self, message: bytes, descriptors: list[int]) -> bytes:
        """Runs a job. Empty if its branch has ended, which ends the box."""
        start = from_json(Start, message)
        if start.needs != self.loaded:
            if start.needs not in self.branches:
                self.branches[start.needs] = _forked(lambda own: self._branch_off(own, start.needs))
            branch = self.branches[start.needs].channel
            socket.send_fds(branch, [message], descriptors)
            answer = branch.recv(4096)
        else:
            pid = self._started(start, descriptors)
            if start.kind != "tune":  # the start of a driver would disturb its measurements
                self.spares.refill()
            self.dispatch.build_launchers(start.launchers, self.dispatch.launchers_of(self.settings))
            others = {child.pid for child in (*self.spares.waiting, *self.branches.values())}
            answer = _wait(pid, start.seconds, start.cpu_seconds, self.settings, others)
        if not self.loaded:  # a branch does not know what belongs to spares
            kept = {spare.scratch for spare in self.spares.waiting} | {self.dispatch.launchers_of(self.settings)}
            for entry in os.scandir(self.settings.scratch):
                if entry.path not in kept:
                    shutil.rmtree(entry.path, ignore_errors=True)
        return answer

    def _branch_off(self, own: socket.socket, modules: str) -> None:
        """In a new process: loads more modules, and runs the jobs that need them as this one does."""
        self.channel.close()
        with self.dispatch.uncollected():
            self.dispatch.load_further(modules, self.settings)
        use_large_pages()
        Zygote(self.dispatch, self.settings, own, modules).serve()

    def _started(self, start: Start, descriptors: list[int]) -> int:
        """The process id of a child that runs a job: a spare, or a new one."""
        if spare := self.spares.give(descriptors):
            return spare.pid
        pid = os.fork()
        if pid == 0:
            self.dispatch.name_endless_loops(start.seconds)
            self.child(descriptors)
        return pid

    def child(self, descriptors=(), own: socket.socket | None = None, scratch: str | None = None) -> None:
        """Runs one job and never returns. Its only results are bytes in two descriptors and an exit status.

        descriptors: of the job. A spare has a channel of its `own` instead, from which they come, and its `scratch`.
        """
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as preference:
            preference.write("1000")  # if memory runs out, the kernel must kill this process, not the judge
        try:
            self.channel.close()
            if own:
                self.dispatch.prepare_spare(self.settings, scratch, keep=own.fileno())
                descriptors = wait_for_job(own)
            self.dispatch.run(self.settings, *descriptors, early=scratch)
        except BaseException as error:  # the judge must hear of every failure, whatever its class
            if descriptors:
                self.dispatch.send(descriptors[-1], Report(error=self.dispatch.describe(error)))
        finally:
            os._exit(0)


def _wait(child: int, seconds: float, cpu_seconds: float, settings: Settings, others: set[int]) -> bytes:
    """Waits until the child ends or has used too much time, memory or disk. Kills it and every process that it started.

    others: children that have nothing to do with it. Returns an End for the judge, with "load" if the machine did not
    run the child for so long that nobody can say whether it needs too much time.
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
    return to_json(End(None if ended else exceeded, os.waitstatus_to_exitcode(status), charge.seconds))


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


# -- branches and spares ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Child:
    """A process that stays. scratch: the folder that only this spare may write to."""

    pid: int
    channel: socket.socket
    scratch: str = ""


def _forked(run: Callable[[socket.socket], None], scratch: str = "") -> Child:
    """A child that runs this with its end of a channel, and then ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            run(theirs)
        finally:
            os._exit(0)
    theirs.close()
    return Child(pid, ours, scratch)


class Spares:
    """At most COUNT children that wait for a job; none without `start`.

    start: runs in the child, with its end of a channel and its scratch folder.
    """

    def __init__(self, scratch: str, start: Callable[[socket.socket, str], None] | None = None):
        self.scratch, self.start = scratch, start
        self.waiting: list[Child] = []

    def refill(self, count: int = COUNT) -> None:
        while self.start and len(self.waiting) < count:
            folder = tempfile.mkdtemp(dir=self.scratch)
            self.waiting.append(_forked(lambda own, folder=folder: self.start(own, folder), folder))

    def give(self, descriptors: list[int]) -> Child | None:
        """Hands a job's descriptors to a spare. Returns that spare, or None if none could be started."""
        while self.waiting:
            spare = self.waiting.pop(0)
            with contextlib.suppress(OSError):
                if spare.channel.recv(16) == READY:
                    socket.send_fds(spare.channel, [b"job"], descriptors)
                    spare.channel.close()
                    return spare
            _end(spare)  # it could not be confined, or the GPU's driver did not start
        return None

    def end(self) -> None:
        while self.waiting:
            _end(self.waiting.pop())


def _end(spare: Child) -> None:
    spare.channel.close()
    with contextlib.suppress(ChildProcessError):
        if not os.waitpid(spare.pid, os.WNOHANG)[0]:
            os.kill(spare.pid, signal.SIGKILL)
            os.waitpid(spare.pid, 0)
    shutil.rmtree(spare.scratch, ignore_errors=True)


def wait_for_job(own: socket.socket) -> list[int]:
    """Waits in the spare. The job's descriptors: request, output, status. Raises EOFError if the zygote ended."""
    own.send(READY)
    message, descriptors, _, _ = socket.recv_fds(own, 16, 3)
    own.close()
    if not message:
        raise EOFError("the zygote ended")
    return descriptors


# -- what a job is charged for ---------------------------------------------------------------------------


class Charge:
    """Charges the process `pid` and its descendants from now on. Call `update` a few times a second."""

    def __init__(self, pid: int):
        self.pid = pid
        self.seconds = 0.0  # charged
        self.computed = 0.0  # CPU time, of all threads of `pid`
        self._now = time.monotonic()
        self._started = self._cpu = cpu_seconds(pid)
        self._waited = _waits(pid)

    def update(self) -> None:
        now, cpu, waited = time.monotonic(), cpu_seconds(self.pid), _waits(self.pid)
        passed, computed = now - self._now, cpu - self._cpu
        if waited:
            # The thread that waited longest held the others up. A process with many threads that compute is not
            # charged less by this: its CPU time has a limit, too.
            queued = max(seconds - self._waited.get(thread, 0.0) for thread, seconds in waited.items())
            self.seconds += passed - min(max(queued, 0.0), passed)
        else:
            self.seconds += min(max(computed, UNKNOWN_LOAD * passed), passed)
        self.computed = cpu - self._started
        self._now, self._cpu, self._waited = now, cpu, waited


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process. Unlike wall time, it does not depend on the load of the machine."""
    return time.clock_gettime(~pid << 3 | 2)  # Linux: the clock of all threads of a process


def children(of: int | None = None) -> list[int]:
    """The processes that `of` (or this process) started and that are not reaped."""
    pid = of or os.getpid()
    try:
        with open(CHILDREN.format(pid)) as found:
            return [int(pid) for pid in found.read().split()]
    except OSError:  # this kernel does not have the file, or /proc is hidden: waitpid still reaps children
        return []


def _waits(pid: int) -> dict[str, float]:
    """Seconds that each thread of a process and its descendants was ready to run and had no core."""
    found = {}
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/task/{thread}/schedstat") as numbers:
                found[thread] = int(numbers.read().split()[1]) / 1e9
    for child in children(pid):
        found |= _waits(child)
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]))
