"""The zygote: the process that the judge starts, and the parent of every process that runs learners' code.

It imports torch and Triton once, then forks a child for each job. The child gives up its rights, runs one job and
ends. The zygote kills and reaps everything that the job left behind before it answers. It holds no reference, no
seed and no verdict. No learner's code ever runs in it.

Jobs that need more modules, such as JAX, have a branch: a zygote of their own, which this one forks. No other job sees
these modules, so a verdict does not depend on what the box has judged before.

This is the only module that knows every kind of job, see the requests in `wire`. The learner's Python runs in "plan",
"jax-plan" and "value", and these get no real inputs. In the others it does not run.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, SimpleNamespace
from unittest import mock

import numpy as np
import torch
import triton
from triton.compiler import ASTSource
from triton.runtime import driver
from triton.runtime.jit import JITFunction

import workshop
from workshop import explore  # noqa: F401  for host functions that use it
from workshop.backend import uncollected
from workshop.device import install_stand_in
from workshop.executor import front_end, launch
from workshop.executor.machine import Machine
from workshop.executor.memory import Watch
from workshop.executor.program import from_data, to_data
from workshop.executor.records import TakesTooLong

from ... import tensors, text, versions
from .. import lockdown
from ..wire import PATIENCE, End, ProgramRequest, Report, Settings, Start, decode_job, from_json, to_json
from . import compiled, plan, replay
from .compiled import WARM_UP
from .job import Job, describe, load, send, show_source, silence
from .recorder import Recorder

PR_SET_CHILD_SUBREAPER, MADV_COLLAPSE = 36, 25
LARGE_PAGE = 2 << 20  # bytes
MAX_WRITTEN = 4 << 30  # bytes on the disk of the scratch folder, or half of the free space if that is less
UNKNOWN_LOAD = 1 / 3  # of the time that passes is charged at least, where the kernel does not say who waits
CHILDREN = "/proc/{0}/task/{0}/children"
PLANS, COUNT = 2, 3  # a check begins with two plans, which compile nothing, and a replay
IDLE_SECONDS = 300.0  # then spares end, because each holds some hundred megabytes of the GPU's memory
READY = b"ready"
IS_RUNNING = "A kernel takes too long: this line was running when the time was used up"

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Modules that run beside learners' code, by name in the package. The rest of the package is hidden.
NEEDED = {module.__name__.split(".")[1] for module in (lockdown, tensors, text, versions)}
HIDDEN = {entry.removesuffix(".py") for entry in os.listdir(PACKAGE) if not entry.startswith("_")} - NEEDED
CPU_SECONDS = 95  # of a job, beside its own budget, which the zygote watches
USUAL = 0.018  # CPU seconds of one run of the warm-up kernel where the limits of time were chosen: a Xeon that is idle
MOST_SLOW = 3.0  # a slower machine has no more time
BESIDE_DRIVER = {"cpu_seconds": CPU_SECONDS, "address_space": None}  # a GPU's driver reserves more than there is
THREAD_BYTES = 512 << 20  # bytes of address space that XLA's threads reserve for stacks and heaps, per core
FORMULAS = "workshop.occupancy"  # it computes what exercises ask for

# The learner's Python runs in these, and all that it needs is loaded: the strict stage holds on a GPU too, after the
# driver has started. Other jobs compile there first, and a compiler starts processes and writes files.
STRICT = {"plan", "value"}
OF_PROGRAMS = {"replay": replay.run, "large": replay.run_large, "compile": compiled.run}  # jobs of one case at a time
JAX = "jax-plan"  # XLA starts threads, and needs the system's random numbers to start


def main(descriptor: int) -> None:
    channel = socket.socket(fileno=descriptor)
    settings = from_json(Settings, channel.recv(65536))
    with uncollected():
        prepare(settings)
    zygote = Zygote(settings, channel)
    if settings.backend != "interpreter" and os.path.exists(CHILDREN.format(os.getpid())):
        zygote.start_spares()
    warm_compiler(settings)
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


def prepare(settings: Settings) -> None:
    """Loads everything that is loaded lazily, because a confined child cannot open files."""
    sys.setrecursionlimit(2000)
    torch.set_num_threads(1)
    if settings.backend == "interpreter":
        install_stand_in()
        workshop.device()
    else:
        _build_driver(settings)
    # Triton parses the text of a function, and of its library, for each program, and does not change the tree.
    parse, trees = JITFunction.parse, {}
    JITFunction.parse = lambda kernel: trees.get(kernel.src) or trees.setdefault(kernel.src, parse(kernel))
    _warm_up_executor()
    with Recorder([torch.ones(1)]):
        with torch.utils._python_dispatch._disable_current_modes():  # imports something
            pass
        torch.randn(4, 4).softmax(-1).double().sum().item()
    np.unique(np.zeros(1))  # imports numpy.ma
    try:
        raise ValueError
    except ValueError:
        traceback.format_exc()


def _warm_up_executor() -> None:
    """Triton's front end reads the functions of its library when a kernel uses them first."""
    kernels, x = load(WARM_UP, "<warm-up>"), torch.ones(16)
    for target in front_end.TARGETS:
        _execute(kernels["of_a_vendor"], (x,), {}, target)
    any(_execute(kernels["warm_up"], (x, 16), {"BLOCK": 16}, target) for target in front_end.TARGETS)


def _execute(kernel, args: tuple, constants: dict, target: str) -> bool:
    """Runs one program as every job does. False if this Triton has no compiler for the vendor."""
    bound, options = launch.bind(kernel, args, constants)
    special = launch.specialise(kernel, bound)
    try:
        program = from_data(to_data(launch.lowered(kernel, special, options, target)))
    except RuntimeError:
        return False
    _known_work[:] = [program, special.arguments]
    _run_known_work()
    return True


_known_work: list = []  # a program of the warm-up, with its arguments


def _run_known_work() -> None:
    launch.execute(*_known_work, (1, 1, 1), Watch(True, True))


def slowness() -> float:
    """How many times longer this machine computes now than that on which limits of time were chosen, 1 to MOST_SLOW.

    Asked when a limit is reached: the same machine is slower where others share its cores.
    """
    if not _known_work:  # this Triton compiles for no vendor
        return 1.0
    begin = time.thread_time()
    for _ in range(2):
        _run_known_work()
    return min(max((time.thread_time() - begin) / (2 * USUAL), 1.0), MOST_SLOW)


def _build_driver(settings: Settings) -> None:
    """Compiles and loads the modules that Triton needs for the GPU's driver. A confined child cannot do this.

    The driver must not be initialised before the fork, because a child cannot use it then. So this does not ask torch
    whether there is a GPU.
    """
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(dir=settings.scratch)
    os.mkdir(launchers_of(settings))
    with mock.patch("torch.cuda.is_available", return_value=True):
        _ = driver.active.utils


def warm_compiler(settings: Settings) -> None:
    """The first compilation in a process takes a second. Children that are forked later need not wait for it."""
    target = front_end.TARGETS.get(settings.backend)
    if target:
        signature = {"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
        kernel = load(WARM_UP, "<warm-up>")["warm_up"]
        with contextlib.suppress(Exception):
            triton.compile(ASTSource(kernel, signature, {(2,): 16}), target=target)


def load_further(modules: str, settings: Settings) -> None:
    """Loads what only some jobs need, in a zygote for them. JAX starts threads only with its backend."""
    if modules == "operators":
        from .operators import warm_up

        if settings.backend == "interpreter":  # on a GPU, the executor's box has asked
            warm_up()
    else:
        from . import jax_plan  # noqa: F401


class Zygote:
    """Runs the jobs that come through `channel`. loaded: the further modules that it has, see Start."""

    def __init__(self, settings: Settings, channel: socket.socket, loaded: str = ""):
        self.settings, self.channel, self.loaded = settings, channel, loaded
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
            build_launchers(start.launchers, launchers_of(self.settings))
            others = {child.pid for child in (*self.spares.waiting, *self.branches.values())}
            answer = _wait(pid, start.seconds, start.cpu_seconds, self.settings, others)
        if not self.loaded:  # a branch does not know what belongs to spares
            kept = {spare.scratch for spare in self.spares.waiting} | {launchers_of(self.settings)}
            for entry in os.scandir(self.settings.scratch):
                if entry.path not in kept:
                    shutil.rmtree(entry.path, ignore_errors=True)
        return answer

    def _branch_off(self, own: socket.socket, modules: str) -> None:
        """In a new process: loads more modules, and runs the jobs that need them as this one does."""
        self.channel.close()
        with uncollected():
            load_further(modules, self.settings)
        use_large_pages()
        Zygote(self.settings, own, modules).serve()

    def _started(self, start: Start, descriptors: list[int]) -> int:
        """The process id of a child that runs a job: a spare, or a new one."""
        if spare := self.spares.give(descriptors):
            return spare.pid
        pid = os.fork()
        if pid == 0:
            name_endless_loops(start.seconds)
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
            silence()
            if own:
                prepare_spare(self.settings, scratch, keep=own.fileno())
                descriptors = wait_for_job(own)
            run(self.settings, *descriptors, early=scratch)
        except BaseException as error:  # the judge must hear of every failure, whatever its class
            if descriptors:
                send(descriptors[-1], Report(error=describe(error)))
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
    exceeded, ended, slow = None, False, 0.0  # slow: asked only where time is up
    while not exceeded and not (ended := bool(select.select([process], [], [], 0.2)[0])):
        charge.update()
        written = free - shutil.disk_usage(settings.scratch).free
        if written > min(MAX_WRITTEN, free // 2) or sum(map(_resident, set(children()) - others)) > settings.memory:
            exceeded = "space"
        elif charge.used(slow) > seconds or charge.computed > (slow or 1.0) * cpu_seconds:
            exceeded, slow = "time" if slow else None, slow or slowness()
        elif time.monotonic() - begin > PATIENCE * seconds:
            exceeded = "load"
    charge.update()
    os.close(process)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    _kill_orphans(others)
    return to_json(End(None if ended else exceeded, os.waitstatus_to_exitcode(status), charge.used(slow)))


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

    def used(self, slow: float) -> float:
        """The charged seconds, of which those of computing count for less on a slow machine. slow: 0 if unknown."""
        return self.seconds - min(self.computed, self.seconds) * (1 - 1 / (slow or 1.0))


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process. Unlike wall time, it does not depend on the load of the machine."""
    return time.clock_gettime(~pid << 3 | 2)  # Linux: the clock of all threads of a process


def children(of: int | None = None) -> list[int]:
    """The processes that `of` (or this process) started and that are not reaped."""
    with contextlib.suppress(OSError), open(CHILDREN.format(of or os.getpid())) as found:
        return [int(pid) for pid in found.read().split()]
    return []  # this kernel does not have the file, or /proc is hidden: waitpid still reaps children


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


# -- launchers of kernels --------------------------------------------------------------------------------
#
# Triton 3.6 and older compile a C function for each list of parameter types, in 0.2 s. It follows from the types alone,
# not from a learner's code. The zygote builds it while the answer's host function runs in a child, and later children
# copy it. Newer versions of Triton build none.

# Of a compiled kernel. A launcher reads these when it runs, not when it is built.
_METADATA = dict.fromkeys(("launch_cooperative_grid", "launch_pdl", "global_scratch_size", "global_scratch_align",
                           "profile_scratch_size", "profile_scratch_align"), 0)  # fmt: skip
_UNNAMED = SimpleNamespace(arg_names=[])


def build_launchers(kinds: Iterable[tuple[str, ...]], folder: str) -> None:
    """Builds the launchers for these lists of types, such as ("*fp32", "i32", "constexpr"), each of them once."""
    with mock.patch.dict(os.environ, TRITON_CACHE_DIR=folder), ThreadPoolExecutor() as pool:
        list(pool.map(_build, kinds))


@functools.cache
def _build(types: tuple[str, ...]) -> None:
    constants = {(i,): None for i, each in enumerate(types) if each == "constexpr"}
    source = SimpleNamespace(fn=_UNNAMED, constants=constants, signature=dict(enumerate(types)))
    with contextlib.suppress(Exception):  # then the job builds its own
        driver.active.launcher_cls(source, SimpleNamespace(**_METADATA, num_ctas=1, warp_size=64))


def copy_launchers(folder: str, scratch: str) -> None:
    """Puts the launchers that were built so far into the cache of a job."""
    with contextlib.suppress(OSError):  # none was built, or one is being written
        shutil.copytree(folder, scratch, dirs_exist_ok=True)


def launchers_of(settings: Settings) -> str:
    """The folder of the launchers that the zygote has built. A child can read it."""
    return os.path.join(settings.scratch, "launchers")


# -- the child -------------------------------------------------------------------------------------------


def name_endless_loops(seconds: float) -> None:
    """Stops a kernel just before its job's time is used up. The report then names the line that was running."""
    signal.signal(signal.SIGPROF, lambda _, frame: _stop(frame, seconds))
    signal.setitimer(signal.ITIMER_PROF, 0.95 * seconds)


def _stop(frame, seconds: float) -> None:
    """seconds: that a slow machine has more of, for each time that it is slower."""
    while frame and not isinstance(machine := frame.f_locals.get("self"), Machine):
        frame = frame.f_back
    if frame is None:  # no kernel runs
        return
    if (more := (slowness() - 1.0) * seconds) > 0:
        signal.signal(signal.SIGPROF, lambda _, later: _stop(later, 0.0))
        signal.setitimer(signal.ITIMER_PROF, 0.95 * more)
        return
    memory = machine.memory
    raise TakesTooLong(IS_RUNNING, memory.launch.kernel, (), *memory.text(machine.where))


def prepare_spare(settings: Settings, scratch: str, keep: int) -> None:
    """Confines a spare and starts the GPU's driver in it. `keep`: the descriptor from which its job will come."""
    if settings.confine:
        _confine_beside_driver(settings, scratch, keep=(keep,))
    replay.Guarded(torch.ones(16), (1,), "cuda").damage()  # loads the first operations on tensors, too


def run(settings: Settings, job: int, output: int, status: int, early: str | None = None) -> None:
    """Runs the job in the descriptor `job`. Results go to `output`, reports to `status`.

    early: the scratch folder of a spare, which went through `prepare_spare`.
    """
    request, tensors = decode_job(mmap.mmap(job, 0, access=mmap.ACCESS_READ))
    out = mmap.mmap(output, os.fstat(output).st_size)
    os.close(output)
    if request.kind == "value" and any("meta" in source for source in request.sources):
        _ = torch.empty(1, device="meta") - 1  # torch imports much for it: 1.5 s, and later it cannot open files
    compiles = settings.backend != "interpreter"
    scratch = early or (tempfile.mkdtemp(dir=settings.scratch) if compiles else None)
    if settings.confine:
        _confine(settings, request.kind, scratch, keep=None if early else (job, status))
    if scratch:
        # Each job has its own cache of compiled kernels: a shared one would pass a learner's kernel to the next one.
        os.environ.update(TRITON_CACHE_DIR=scratch, HOME=scratch, TMPDIR=scratch)
        tempfile.tempdir = None
        # Triton asks for memory where a kernel makes tensor descriptors, and the host function may not be here.
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
        copy_launchers(launchers_of(settings), scratch)
    work, kind = Job(settings.backend, request, tensors, out, status), request.kind
    if isinstance(request, ProgramRequest):
        show_source(request.source)
        programs = replay.Known(request.programs)
        if kind == "tune":
            replay.tune(work, programs)
        else:
            work.each(lambda case: OF_PROGRAMS[kind](work, case, programs))
    elif kind == JAX:  # `load_further` has imported it
        sys.modules[f"{__package__}.jax_plan"].run(work)
    else:
        {"plan": plan.run, "value": plan.call}[kind](work)
    send(status, Report(None, done=True))


# -- confinement -----------------------------------------------------------------------------------------


def _confine(settings: Settings, kind: str, scratch: str | None, keep: tuple[int, ...] | None) -> None:
    """Confines the process: the strict stage if nothing has to be compiled; on a GPU, after its driver has started.

    `keep` is None for a spare, which is confined beside its driver already.
    """
    if kind == "value":  # an exercise may ask for their results; a host function may size its launch with them
        _hide_formulas()
    read = ("/dev/urandom",) if kind == JAX else ()
    if settings.backend == "interpreter":
        # What is mapped already does not count. A torch for GPUs maps some gigabytes, also where no job uses the GPU.
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
        space = mapped + settings.memory + (THREAD_BYTES * (os.cpu_count() or 1) if kind == JAX else 0)
        limits = {"cpu_seconds": CPU_SECONDS, "address_space": space}
        lockdown.confine("strict", read=_readable(settings, read), keep=keep, **limits)
        return
    if keep is not None:
        _confine_beside_driver(settings, scratch, keep, read)
    if kind in STRICT:
        lockdown.confine("strict", read=_readable(settings), keep=None, **BESIDE_DRIVER)


def _confine_beside_driver(settings: Settings, scratch: str, keep: tuple[int, ...], read: tuple[str, ...] = ()) -> None:
    """The base stage, which allows what the GPU's driver needs, and the start of the driver."""
    readable = _readable(settings, (*read, launchers_of(settings)))
    write = [scratch, *settings.devices, "/proc/self"]  # the driver names its threads there
    lockdown.confine("base", read=readable, write=write, keep=keep, local_sockets=True, **BESIDE_DRIVER)
    torch.zeros(1, device="cuda")


def _readable(settings: Settings, more: tuple[str, ...] = ()) -> list[str]:
    """The files that the process may read. Hides the modules that hold references and solutions, and their files."""
    sys.modules.update(dict.fromkeys(f"autograder.{name}" for name in HIDDEN))
    hidden = (PACKAGE, os.path.dirname(workshop.__file__))
    paths = settings.read if lockdown.landlock_abi() else ()
    return [*(path for path in paths if path not in hidden), *more]


def _hide_formulas() -> None:
    """Empties the functions of FORMULAS, and takes the module away.

    It is not enough to hide their names: a module that imported them keeps them, and a search of the heap finds them.
    """
    for formula in vars(sys.modules[FORMULAS]).values():
        if isinstance(formula, FunctionType) and formula.__module__ == FORMULAS:
            formula.__code__ = _hidden.__code__
    sys.modules[FORMULAS] = None
    workshop.occupancy = workshop.num_programs = _hidden  # whoever calls them is told why


def _hidden(*_, **__):
    raise ImportError("this is what the exercise asks for")


if __name__ == "__main__":
    main(int(sys.argv[1]))
