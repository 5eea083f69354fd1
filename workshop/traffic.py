"""What launches do to memory where the executor runs them: how often each element of a tensor is read and written.

The count is exact and the same on every machine. It is what the kernel asks memory for; caches play no part. The
executor counts. This module turns its records into totals and one entry per tensor.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from workshop.backend import interpreting
from workshop.executor.records import Argument, Launch
from workshop.picture import count, times
from workshop.short import own_lines

active: list["Recording"] = []  # those that are entered: `workshop.launching` adds each launch to them


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


@dataclass(eq=False)
class Recording:
    """Every launch while it is entered, as the executor saw it, and what they asked of memory.

    elements: reads and writes are counted for each element, which takes memory and time; without it there are totals
    only. races: accesses that nothing orders are looked for. `result` is the counted function's.
    """

    elements: bool = True
    races: bool = False
    records: list[Launch] = field(default_factory=list)
    result: Any = None

    def __enter__(self) -> "Recording":
        active.append(self)
        return self

    def __exit__(self, *error) -> None:
        active.remove(self)

    def defined(self) -> dict[int, torch.Tensor]:
        """By a storage's address, which of its elements are defined. All others are defined whole."""
        return {}

    def add(self, launch: Launch) -> None:
        self.records.append(launch)

    def ended(self) -> None:
        """A launch is over, with an error or without."""

    @property
    def tensors(self) -> list[TensorTraffic]:
        """One entry per tensor, in the order in which kernels were given them."""
        found: dict[tuple, TensorTraffic] = {}
        for launch in self.records:
            given: dict[tuple, Argument] = {}
            for each in launch.arguments.values():
                # The counts of a tensor that is two parameters of one launch hold the accesses of both.
                given.setdefault((each.storage.start, each.offset, each.shape, each.stride), each)
            for place, each in given.items():
                none = np.zeros(each.shape, np.int64)
                tensor = found.setdefault(place, TensorTraffic(each.name, each.shape, each.itemsize, none, none))
                tensor.reads, tensor.writes = tensor.reads + each.reads, tensor.writes + each.writes
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
        tensors = {tensor.name: tensor for tensor in reversed(self.tensors)}
        if name not in tensors:
            raise KeyError(f"no kernel was given a tensor as {name!r}; there are: {[*tensors][::-1]}")
        return tensors[name]

    def __str__(self) -> str:
        launches = count(self.launches, "launch", "launches")
        lines = [f"{launches}, {self.bytes_read:,} bytes read, {self.bytes_written:,} bytes written"]
        for tensor in self.tensors:
            read, written = times(tensor.reads), times(tensor.writes)
            lines.append(f"  {tensor.name} {list(tensor.shape)}: elements read {read}, written {written}")
        return "\n".join(lines)


@own_lines()
def count_bytes(function: Callable, *args, **kwargs) -> Recording:
    """Call `function` and count what the kernels it launches read and write.

    Raises RuntimeError when kernels run on a GPU, where nothing can be counted.
    """
    with recording() as traffic:
        traffic.result = function(*args, **kwargs)
    return traffic


def recording(elements: bool = True) -> Recording:
    """What counts the traffic of every kernel launched in its `with` block; errors as in count_bytes."""
    if not interpreting():
        raise RuntimeError(
            "loads and stores can only be counted where kernels run without a GPU: start Python with TRITON_INTERPRET=1"
        )
    return Recording(elements)
