"""The box: a separate process that runs learners' code. This module is the judge's end of it.

The judge passes sealed memory (the request and the input tensors), an output of sealed size and a pipe to the box. It
reads the output and the reports only after the process that ran the code is dead. Nothing else crosses the wall.

This file and `wire` run in the judge's process. `wire` and `lockdown` run in the box too.
`inside/` runs in the box only.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import math
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from . import lockdown, wire

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # of the packages
START_SECONDS = 120
EARLY = 512  # the "death" of a process that ended itself with status 0 before it finished
MEMORY_BYTES = 6 << 30
PIPE_BYTES = 1 << 20  # a pipe that holds the reports of most jobs: their writer need not wait until they are read
LOOK = 0.1  # seconds between two looks at what a running job has reported


class BoxError(Exception):
    """The box itself does not work. The answer is not the cause."""


class Overloaded(Exception):
    """Other programs left a job no time to run. The answer is not the cause."""


def started_early(confine: bool) -> Box | None:
    """A box that imports torch and Triton while this process does the same; None where there may be a GPU."""
    if os.environ.get("TRITON_INTERPRET") != "1" and lockdown.gpu_paths()[1]:
        return None
    box = Box("interpreter", confine)
    box.start()
    return box


@dataclass(frozen=True)
class Outcome:
    """How a job ended: its reports, its output memory, and its exit status."""

    reports: list[wire.Report]
    output: bytes
    exceeded: str | None = None  # "time" or "space" (memory or disk), if it was killed because it used too much of it
    exit: int = 0
    seconds: float = 0.0  # that it was charged for: computing and sleeping, not waiting for a core
    garbled: str = ""  # why it is not a report, if the job sent such a thing; then `reports` is empty

    @property
    def death(self) -> int:
        """The exit status of a process that ended before it finished. Never 0."""
        return self.exit or EARLY

    def by_case(self, count: int) -> dict[int, wire.Report | Outcome]:
        """The first report of each case. The end of the process is charged to the first case without a report.

        A process that ended normally but sent no valid reports did not crash: its first case gets an error of the
        kind "garbled".
        """
        reports: dict[int, wire.Report | Outcome] = {}
        for report in self.reports:
            if report.case is not None and report.case < count:
                same = reports.get(report.same)
                known = replace(same, case=report.case, programs={}) if isinstance(same, wire.Report) else report
                reports.setdefault(report.case, known)
            elif report.error:  # before any case: the module itself failed
                return dict.fromkeys(range(count), report)
        missing = [case for case in range(count) if case not in reports]
        if missing:  # do not trust "done": code that ends its process may have written it
            garbled = wire.Report(missing[0], error=wire.Trouble("garbled", message=self.garbled))
            reports[missing[0]] = garbled if self.garbled and not self.exceeded and not self.exit else self
        return reports


class Box:
    """One zygote. Only one caller at a time may use `run`. Several boxes can run in parallel.

    backend: "interpreter", "cuda" or "hip". confine=False runs learners' code with the caller's rights: use it only for
    your own code. Raises lockdown.Unconfined if this machine cannot confine.
    """

    def __init__(self, backend: str, confine: bool = True, memory: int = MEMORY_BYTES):
        self.backend, self.confine, self.memory = backend, confine, memory
        if confine and (absent := lockdown.missing()):
            raise lockdown.Unconfined("; ".join(absent))
        self.process: subprocess.Popen | None = None
        self.channel: socket.socket | None = None
        self.scratch = tempfile.mkdtemp(prefix="workshop-box-")
        self.reported: Callable[[int], None] = lambda count: None  # told how many lines a running job has written

    def start(self):
        """Starts the zygote and does not wait: it imports torch and Triton in the background."""
        if self.process and self.process.poll() is None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.chmod(self.scratch, 0o711)
        command = [sys.executable, "-m", f"{__package__}.inside.zygote", str(theirs.fileno())]
        if self.confine:
            nodes = lockdown.gpu_paths()[1] if self.backend != "interpreter" else []
            command = lockdown.outer_command(command, read=_readable_paths(), write=[self.scratch, *nodes])
        self.process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=self._environment(),
        )
        theirs.close()
        paths = {"read": tuple(_readable_paths()), "devices": tuple(lockdown.gpu_paths()[1])}
        ours.send(wire.to_json(wire.Settings(self.backend, self.confine, self.scratch, self.memory, **paths)))
        self.channel, self.ready = ours, False

    def _environment(self) -> dict[str, str]:
        """A short list, not a copy: the learner's code must not see the instructor's tokens."""
        kept = ("PATH", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CUDA_HOME", "ROCM_PATH",
                "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CC",
                "TRITON_LIBCUDA_PATH", "TRITON_PTXAS_PATH", "TRITON_LIBHIP_PATH")  # fmt: skip
        environment = {k: os.environ[k] for k in kept if k in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, environment.get("PYTHONPATH")]))
        if self.backend == "interpreter":  # where torch sees a card, autograd starts threads, and nobody may fork then
            environment |= {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}
        return environment | {
            "TRITON_INTERPRET": "1" if self.backend == "interpreter" else "0",
            "HOME": self.scratch,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            # A tensor that is freed gives its memory to the next one. The system would clear the pages of each.
            "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
            "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
            "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # in large pages: a job touches some thousand small ones
            "JAX_PLATFORMS": "cpu",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "ignore",
        }

    def _wait_until_ready(self):
        self.start()
        if self.ready:
            return
        if not select.select([self.channel], [], [], START_SECONDS)[0] or self.channel.recv(64) != b"ready":
            self.kill()
            raise BoxError("the box did not start: " + self.process.stderr.read().decode(errors="replace")[-2000:])
        self.ready = True

    def run(self, request: wire.Request, tensors: bytes | bytearray = b"", output_size: int = 0, seconds: float = 60.0,
            cpu_seconds: float = math.inf, launchers: tuple[tuple[str, ...], ...] = ()) -> Outcome:  # fmt: skip
        """Runs one job. `tensors` is the memory that the request's inputs point into (see wire.Packer).

        launchers: what to prepare on a GPU meanwhile, for later jobs (see wire.Start).

        Raises Overloaded if other programs left the job no time to run.
        """
        self._wait_until_ready()
        job = _memory(wire.encode_job(request, tensors))
        output = _memory(size=output_size, writable=True)
        reading, writing = os.pipe()
        with contextlib.suppress(OSError):  # the system gives each user a limited number of large ones
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        try:
            start = wire.Start(request.kind, seconds, cpu_seconds, launchers, getattr(request, "needs", ""))
            socket.send_fds(self.channel, [wire.to_json(start)], [job, output, writing])
            status, end = self._collect(reading, seconds)
            result = os.pread(output, output_size, 0)
        except OSError as error:
            self.kill()
            raise BoxError(f"the box broke: {error}") from error
        finally:
            for descriptor in (job, output, reading, writing):
                os.close(descriptor)
        if end.exceeded == "load":
            raise Overloaded("This machine is too busy: other programs left the answer almost no time to run.")
        outcome = Outcome([], result, end.exceeded, end.exit, end.seconds)
        try:
            return replace(outcome, reports=wire.parse(status))
        except wire.ProtocolError as error:
            return replace(outcome, garbled=str(error))

    def _collect(self, reading: int, seconds: float) -> tuple[bytes, wire.End]:
        """Reads the status until the child is dead. Reads at most about MAX_STATUS bytes, even if it writes more.

        It looks every LOOK seconds, and does not wait for the next line: each line would wake this process.
        """
        status, lines = bytearray(), 0
        os.set_blocking(reading, False)
        pipe = io.FileIO(reading, closefd=False)
        deadline = time.monotonic() + wire.PATIENCE * seconds + 15
        while True:
            left = deadline - time.monotonic()
            ended = bool(select.select([self.channel], [], [], max(min(left, LOOK), 0))[0])
            while len(status) <= wire.MAX_STATUS and (more := pipe.read(1 << 16)):
                status += more
                lines += more.count(b"\n")
                self.reported(lines)
            if len(status) > wire.MAX_STATUS:  # too much output: kill the writer; `parse` reports the reason
                self.kill()
                return bytes(status), wire.End(seconds=seconds)
            if ended:
                message = self.channel.recv(4096)
                if not message:
                    self.kill()
                    return bytes(status), wire.End(exit=-signal.SIGKILL, seconds=seconds)
                return bytes(status), wire.from_json(wire.End, message)
            if left <= 0:
                self.kill()
                return bytes(status), wire.End("time", -signal.SIGKILL, seconds)

    def kill(self):
        """Kills the zygote and its process group. The next job starts a new one."""
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self.channel:
            self.channel.close()
            self.channel = None

    def close(self):
        self.kill()
        if self.process:
            self.process.stderr.close()
            self.process = None
        shutil.rmtree(self.scratch, ignore_errors=True)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.close()


def _memory(data: bytes = b"", size: int | None = None, writable: bool = False) -> int:
    """Anonymous memory of sealed size, zeros behind the data. Its content is sealed too, unless it is `writable`."""
    descriptor = os.memfd_create("box", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, max(len(data) if size is None else size, 1))
    with open(descriptor, "wb", closefd=False) as memory:
        memory.write(data)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL | (0 if writable else fcntl.F_SEAL_WRITE)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def _readable_paths() -> list[str]:
    """Files that a compiler and late imports of Python need to read, in a box that may open files."""
    ours = [os.path.join(ROOT, name) for name in ("autograder", "workshop")]
    packages = [path for path in sys.path if "site-packages" in path]
    return list(dict.fromkeys([*ours, *lockdown.runtime_paths(), *lockdown.gpu_paths()[0], *packages]))
