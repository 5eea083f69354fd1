"""Spare children: confined, with the GPU's driver started, before an answer arrives.

The start of the driver takes about 0.4 s, and a check runs several jobs. So on a GPU the zygote keeps children that
have done it. A spare has never seen an answer. It runs one job and ends, as every child does.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

PLANS, COUNT = 2, 3  # a check begins with two plans, which compile nothing, and a replay
IDLE_SECONDS = 300.0  # then spares end, because each holds some hundred megabytes of the GPU's memory
READY = b"ready"


@dataclass(frozen=True)
class Spare:
    pid: int
    channel: socket.socket
    scratch: str  # the folder that only this child may write to


class Spares:
    """At most COUNT children that wait for a job.

    start: runs in the child, with its end of a channel and its scratch folder, and never returns.
    """

    def __init__(self, scratch: str, start: Callable[[socket.socket, str], None]):
        self.scratch, self.start = scratch, start
        self.waiting: list[Spare] = []

    @property
    def pids(self) -> set[int]:
        return {spare.pid for spare in self.waiting}

    @property
    def folders(self) -> set[str]:
        return {spare.scratch for spare in self.waiting}

    def refill(self, count: int = COUNT) -> None:
        while len(self.waiting) < count:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            folder = tempfile.mkdtemp(dir=self.scratch)
            pid = os.fork()
            if pid == 0:
                ours.close()
                self.start(theirs, folder)
            theirs.close()
            self.waiting.append(Spare(pid, ours, folder))

    def give(self, descriptors: list[int]) -> Spare | None:
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


def _end(spare: Spare) -> None:
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
