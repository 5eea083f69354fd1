"""Counts, where kernels run without a GPU, how often one reads and writes each element of its tensors.

The count is exact and the same on every machine. It is what the kernel asks memory for; caches play no part. The
executor counts. This module turns its records into totals and one entry per tensor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workshop.backend import interpreting
from workshop.short import own_lines
from workshop.words import times

if TYPE_CHECKING:
    from workshop.executor.records import Argument, Launch


@dataclass(eq=False)
class TensorTraffic:
    """One tensor that was given to a kernel, and how often each of its elements was read and written.

    `reads` and `writes` are integer arrays of the tensor's shape, summed over the launches.
    """

    name: str
    shape: tuple[int, ...]
    element_size: int
    reads: np.ndarray
    writes: np.ndarray

    @classmethod
    def of(cls, argument: Argument) -> TensorTraffic:
        """What the first launch did to a tensor."""
        counts = argument.reads.astype(np.int64), argument.writes.astype(np.int64)
        return cls(argument.name, argument.shape, argument.itemsize, *counts)

    def add(self, argument: Argument) -> None:
        """Add what another launch did to the same tensor."""
        self.reads += argument.reads
        self.writes += argument.writes

    @property
    def bytes_read(self) -> int:
        return int(self.reads.sum()) * self.element_size

    @property
    def bytes_written(self) -> int:
        return int(self.writes.sum()) * self.element_size


@dataclass
class Traffic:
    """What every kernel launched inside `recording()` asked of memory; `result` is the counted function's."""

    records: list[Launch]
    result: Any = None

    @property
    def tensors(self) -> list[TensorTraffic]:
        """One entry per tensor, in the order in which kernels were given them."""
        found: dict[tuple, TensorTraffic] = {}
        for launch in self.records:
            given: dict[tuple, Argument] = {}
            for argument in launch.arguments.values():
                # The counts of a tensor that is two parameters of one launch hold the accesses of both.
                place = argument.storage.start, argument.offset, argument.shape, argument.stride
                given.setdefault(place, argument)
            for key, argument in given.items():
                if key in found:
                    found[key].add(argument)
                else:
                    found[key] = TensorTraffic.of(argument)
        return list(found.values())

    @property
    def launches(self) -> int:
        return len(self.records)

    @property
    def bytes_read(self) -> int:
        return sum(launch.bytes_loaded for launch in self.records)

    @property
    def bytes_written(self) -> int:
        return sum(launch.bytes_stored for launch in self.records)

    @property
    def bytes_moved(self) -> int:
        return self.bytes_read + self.bytes_written

    def per_element(self, elements: int) -> float:
        """Bytes moved for each of that many elements."""
        return self.bytes_moved / elements if elements else 0.0

    def __getitem__(self, name: str) -> TensorTraffic:
        """The tensor that a kernel received as its parameter `name`."""
        tensors = self.tensors
        for tensor in tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(f"no kernel was given a tensor as {name!r}; there are: {[t.name for t in tensors]}")

    def __str__(self) -> str:
        launches = f"{self.launches} launch{'es' * (self.launches != 1)}"
        lines = [f"{launches}, {self.bytes_read:,} bytes read, {self.bytes_written:,} bytes written"]
        for tensor in self.tensors:
            lines.append(
                f"  {tensor.name} {list(tensor.shape)}: elements read {times(tensor.reads)}, "
                f"written {times(tensor.writes)}"
            )
        return "\n".join(lines)


@own_lines
def count_bytes(function: Callable, *args, **kwargs) -> Traffic:
    """Call `function` and count what the kernels it launches read and write.

    Raises RuntimeError when kernels run on a GPU, where nothing can be counted.
    """
    with recording() as traffic:
        traffic.result = function(*args, **kwargs)
    return traffic


@contextlib.contextmanager
def recording(elements: bool = True) -> Iterator[Traffic]:
    """Count the traffic of every kernel launched inside the block; errors as in count_bytes.

    elements: also count for each element, which takes memory and time. Without it there are totals only.
    """
    if not interpreting():
        raise RuntimeError(
            "loads and stores can only be counted where kernels run without a GPU: start Python with TRITON_INTERPRET=1"
        )
    from workshop.launching import Recording

    with Recording(elements) as recording:
        yield Traffic(recording.launches)
