"""Times calls on a GPU: cold caches, no launch overhead, the median with its quantiles."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from workshop.backend import driver, torch_device

FLUSH = 1 << 29  # bytes read between two timed calls: twice the 256 MiB of an MI300X's Infinity Cache
WARMUPS = 3
REPEATS = 20


class Gbps(NamedTuple):
    """A measured speed in GB/s: the median, and the 20 % and 80 % quantiles."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.0f} GB/s ({self.low:.0f} to {self.high:.0f})"


class Timer:
    """Times one call at a time, with cold caches and without the host's launch overhead."""

    def __init__(self) -> None:
        self.interface = driver().get_device_interface()  # torch.cuda, torch.xpu, ...
        self.flush = torch.zeros(FLUSH // 4, dtype=torch.float32, device=torch_device())

    def milliseconds(self, function: Callable, *inputs):
        """(time, output) of one call.

        A launch is asynchronous: it returns before the kernel has run. So the GPU itself notes the time, at two
        events in its queue, and the host waits before it reads them.
        """
        start, end = (self.interface.Event(enable_timing=True) for _ in range(2))
        # Reading evicts what the last call left in the caches, without dirty lines that the next would have
        # to write back. It also keeps the GPU busy until the host has queued what follows.
        self.flush.sum()
        start.record()
        output = function(*inputs)
        end.record()
        self.interface.synchronize()
        return start.elapsed_time(end), output


def gbps(nbytes: int, milliseconds: list[float]) -> Gbps:
    """The speed of calls that moved `nbytes` each and took these times."""
    speeds = nbytes / (np.asarray(milliseconds) * 1e6)
    return Gbps(*np.quantile(speeds, (0.5, 0.2, 0.8)).tolist())


def copy_source(nbytes: int):
    """A tensor whose copy reads and writes `nbytes` in all."""
    return torch.ones(max(1, nbytes // 8), dtype=torch.float32, device=torch_device())


@functools.cache
def measure_copy() -> Gbps:
    """GB/s of a device-to-device copy of 1 GiB, reads and writes together. Each process measures it once."""
    timer, source = Timer(), copy_source(1 << 30)
    for _ in range(WARMUPS):
        source.clone()
    return gbps(1 << 30, [timer.milliseconds(source.clone)[0] for _ in range(REPEATS)])
