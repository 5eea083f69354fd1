"""The time that a job is charged for: what it computes and what it sleeps, but not what it waits for a core.

So a verdict does not depend on the load of the machine, and an answer that sleeps cannot stretch its time.
"""

from __future__ import annotations

import contextlib
import os
import time

UNKNOWN_LOAD = 1 / 3  # of the time that passes is charged at least, where the kernel does not say who waits
CHILDREN = "/proc/{0}/task/{0}/children"


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
