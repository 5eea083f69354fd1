"""What the memory checker notes of a launch: its arguments and their counts, races, and the access that failed."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass, field

import numpy as np
import torch

WINDOW = 48  # bits of address space per tensor argument, half of it before the tensor
# Who wrote or read an element: the number of a program, or one of these. ATOMIC - p: program p with an atomic.
NOBODY, SEVERAL, ATOMIC = -1, -2, -3


class OutOfBounds(Exception):
    """A load, store or atomic reached outside its tensor. `fault` describes it."""

    def __init__(self, fault: Fault):
        super().__init__(str(fault))
        self.fault = fault


@dataclass(frozen=True)
class Fault:
    """The first access outside a tensor.

    `element` counts elements of the tensor's dtype from its first one; `index` is its position in the tensor,
    where a coordinate past `shape` is outside (None: before the start). `place` is "gap" (between the rows of
    a strided view), "past the end" or "before the start", by `distance` elements (0 in a gap), or "nowhere"
    (the pointer belongs to no argument; then `argument` is None).
    """

    kind: str  # "load", "store" or "atomic"
    kernel: str
    program: tuple[int, int, int]
    argument: str | None
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    block: tuple[int, ...]  # shape of the block of pointers
    lane: tuple[int, ...]  # first lane that is outside
    lanes: int  # how many are
    element: int
    index: tuple[int, ...] | None
    place: str
    distance: int
    line: int | None
    code: str

    def to_json(self) -> dict:
        return asdict(self)

    def __str__(self) -> str:
        where = f"line {self.line}: {self.code}" if self.line else "unknown line"
        who = f"{self.kernel}, program {self.program}, lane {_short(self.lane)}"
        many = f" and {self.lanes - 1} more lanes" if self.lanes > 1 else ""
        if self.argument is None:
            return f"out-of-bounds {self.kind} in {who}{many}: a pointer to no tensor at all — {where}"
        place = "in the gap between its rows" if self.place == "gap" else f"{self.distance} {self.place}"
        what = f"'{self.argument}' of shape {self.shape}, stride {self.stride}"
        return (
            f"out-of-bounds {self.kind} in {who}{many}: element {self.element} of {what}, {place} — {where}"
        )


@dataclass(frozen=True)
class Race:
    """One element that two programs of a launch touched, at least one of them writing, and that nothing orders.

    `kind` is "write-write", "read-write" (read first) or "write-read" (written first). `same_value` says of a
    write-write race whether both wrote the same bits. A program that is None means several. If both programs are the
    same, two lanes of it touched the element.
    """

    kind: str
    kernel: str
    argument: str
    index: tuple[int, ...]
    first: tuple[int, int, int] | None
    second: tuple[int, int, int]
    same_value: bool | None
    line: int | None
    code: str

    def to_json(self) -> dict:
        return asdict(self)


class Storage:
    """One block of memory during one launch. Arrays count at the first byte of each element.

    `reader` and `writer` are made when they are needed first: most blocks of memory are only read or only written.
    `mark` says which lane wrote an element last (races.Order). `passes` counts, for each line of the kernel, the loads
    that found an element as it was before the launch. Lanes of one load that share an element count once.
    """

    def __init__(self, start: int, size: int):
        self.start = start
        self.reads = np.zeros(size, np.int32)
        self.writes = np.zeros(size, np.int32)
        self.mark = np.zeros(size, np.int64)
        self.read = self.written = False
        self.passes: dict[int | None, np.ndarray] = {}

    @functools.cached_property
    def reader(self) -> np.ndarray:
        return np.full(self.reads.size, NOBODY, np.int64)

    @functools.cached_property
    def writer(self) -> np.ndarray:
        return np.full(self.reads.size, NOBODY, np.int64)

    def count_pass(self, line: int | None, at: np.ndarray | slice) -> None:
        if line not in self.passes:
            self.passes[line] = np.zeros(self.reads.size, np.int32)
        self.passes[line][at] += 1


class Argument:
    """A tensor argument of a launch: name, shape, stride (in elements), dtype and per-element counts."""

    def __init__(self, name: str, tensor: torch.Tensor, storage: Storage, window: int):
        self.name, self.dtype, self.storage = name, tensor.dtype, storage
        self.shape, self.stride = tuple(tensor.shape), tuple(tensor.stride())
        self.itemsize = tensor.element_size()
        self.real = tensor.data_ptr()
        self.virtual = (window + 1 << WINDOW) | (
            self.real & 0xFFF
        )  # the low bits: alignment is part of the language
        extent = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))
        self.bytes = extent * self.itemsize if tensor.numel() else 0
        self.within = np.zeros(self.bytes, bool)
        if self.bytes:
            for byte in range(self.itemsize):
                self._view(self.within[byte:])[...] = True
        self.solid = bool(self.within.all())  # no gaps between rows
        self.bytes_loaded = self.bytes_stored = 0

    def _view(self, per_byte: np.ndarray) -> np.ndarray:
        strides = [stride * self.itemsize * per_byte.itemsize for stride in self.stride]
        return np.lib.stride_tricks.as_strided(per_byte, self.shape, strides)

    def _counts(self, per_byte: np.ndarray) -> np.ndarray:
        if not self.bytes:
            return np.zeros(self.shape, per_byte.dtype)
        return self._view(per_byte[self.real - self.storage.start :]).copy()

    @property
    def reads(self) -> np.ndarray:
        """How often this launch read each element, through any argument: int32, the tensor's shape."""
        return self._counts(self.storage.reads)

    @property
    def writes(self) -> np.ndarray:
        """How often this launch wrote each element, through any argument: int32, the tensor's shape."""
        return self._counts(self.storage.writes)

    @property
    def unwritten(self) -> np.ndarray:
        """Indices of the elements that this launch never wrote: one row each, one column a dimension."""
        return np.argwhere(self.writes == 0)

    def index(self, element: int) -> tuple[int, ...] | None:
        """Coordinates of the element at that distance from the first; None before the start."""
        if element < 0:
            return None
        coordinates = [0] * len(self.shape)
        for dim in sorted(range(len(self.shape)), key=lambda dim: -self.stride[dim]):
            if self.stride[dim] > 0:
                coordinates[dim], element = divmod(element, self.stride[dim])
        return tuple(coordinates)

    def locate(self, offset: int) -> dict:
        """The fields of a Fault for the place `offset` bytes after the first element."""
        element, last = offset // self.itemsize, self.bytes // self.itemsize - 1
        if 0 <= element <= last:
            place, distance = "gap", 0
        elif element > last:
            place, distance = "past the end", element - last
        else:
            place, distance = "before the start", -element
        where = {"element": element, "index": self.index(element), "place": place, "distance": distance}
        return {"argument": self.name, "shape": self.shape, "stride": self.stride, **where}


NOWHERE = {"argument": None, "shape": (), "stride": (), "element": 0, "index": None}
NOWHERE |= {"place": "nowhere", "distance": 0}


@dataclass
class Launch:
    """What one launch did. Bytes count active lanes; `masked_lanes` are the others.

    `accesses` is a hash of them all, in their order: two launches that do the same have the same one.
    """

    kernel: str
    filename: str
    grid: tuple[int, int, int] = (0, 0, 0)
    arguments: dict[str, Argument] = field(default_factory=dict)
    loads: int = 0
    stores: int = 0
    atomics: int = 0
    bytes_loaded: int = 0
    bytes_stored: int = 0
    masked_lanes: int = 0
    accesses: int = 0
    races: list[Race] = field(default_factory=list)
    race_count: int = 0


def _short(lane: tuple[int, ...]) -> str:
    return str(lane[0]) if len(lane) == 1 else str(lane)
