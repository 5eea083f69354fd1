"""Where the lanes of an access lie: a Box, which is read and written as one strided view, or Lanes one by one."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from .program import Location
from .records import Argument, Storage
from .values import Affine, Number, Rect, column, lattice, row_major

MOST_LANES = 1 << 23  # of one access that are written out where only addresses are wanted
Spans = torch.Tensor  # elements of a storage: (number, 2), the first one and the one after the last


def covered(spans: list[Spans], begin: int, end: int) -> int:
    """How many of the elements from `begin` to `end` lie in at least one span."""
    if not spans:
        return 0
    starts, ends = map(ascending, torch.cat(spans).clamp(begin, end).T.numpy())
    gaps = np.maximum(starts[1:] - ends[:-1], 0)  # each has ended that began before a gap
    return int(ends[-1] - starts[0] - gaps.sum())


@dataclass(frozen=True)
class Access:
    """What one operation does to memory, for all programs of a batch.

    kind: "load", "store" or "atomic". address: of each lane, Affine or int64. shape: of the block. mask: of the lanes,
    Rect, tensor or None. on: bool, the programs that take part; None for all. where: the line.
    """

    kind: str
    address: Affine | torch.Tensor
    shape: tuple[int, ...]
    mask: Rect | torch.Tensor | None
    on: torch.Tensor | None
    dtype: torch.dtype
    where: Location | None

    @property
    def size(self) -> int:
        """Lanes of a program."""
        return math.prod(self.shape)

    @property
    def steps(self) -> tuple[int, ...]:
        """By how many elements the address grows from lane to lane, along each axis; () where that differs."""
        if not isinstance(self.address, Affine):
            return ()
        return tuple(step // self.dtype.itemsize for step in self.address.parts)


@dataclass(eq=False)
class Region:
    """Lanes of an access that lie in one tensor.

    Of each lane, in the region's own `shape` or with length 1 along an axis where nothing varies, int64: `programs`,
    their numbers in the batch; `lane`, in the block; `at`, elements of the access, in its storage. `flat` arrays have
    one number for each element of the access's type, `noted` ones for each unit of the storage.
    """

    access: Access
    argument: Argument

    @property
    def storage(self) -> Storage:
        return self.argument.storage

    @property
    def scale(self) -> int:
        """Units of an element."""
        return self.access.dtype.itemsize // self.storage.unit

    @property
    def lanes(self) -> int:
        return math.prod(self.shape)

    def read(self) -> torch.Tensor:
        """The elements, in the region's own shape. What a Box gives is a view of memory."""
        return self.get(self.storage.typed(self.access.dtype))

    def noted(self, array: torch.Tensor) -> torch.Tensor:
        return self.get(array, self.scale)

    def note(self, array: torch.Tensor, values) -> None:
        self.set(array, values, self.scale)

    def whose(self, batch: torch.Tensor) -> torch.Tensor:
        """The numbers of the programs among all that run, by those in the batch."""
        return batch[self.programs]

    def program_of(self, lanes: torch.Tensor) -> int:
        """That of the first of these lanes, by its number in the batch."""
        return int(self.programs.expand(self.shape)[lanes.expand(self.shape)][0])

    def one_by_one(self) -> Lanes:
        parts = (part.expand(self.shape).reshape(-1) for part in (self.programs, self.lane, self.at))
        return Lanes(self.access, self.argument, *parts)


@dataclass(eq=False)
class Box(Region):
    """Programs first, first + 1, … (numbers in the batch), each with the first `counts` elements of the block's axes.

    start: the first element, counted in elements of the access in its storage. steps: to the next program, and along
    each axis.
    """

    first: int
    count: int
    counts: tuple[int, ...]
    start: int
    steps: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.count, *self.counts

    @property
    def programs(self) -> torch.Tensor:
        return column(torch.arange(self.first, self.first + self.count), len(self.counts))

    @property
    def lane(self) -> torch.Tensor:
        return lattice(0, row_major(self.access.shape), self.counts)

    @property
    def at(self) -> torch.Tensor:
        return lattice(self.start, self.steps, self.shape)[0]

    @functools.cached_property
    def distinct(self) -> bool:
        """Whether no two lanes share an element."""
        return distinct(self.steps, self.shape)

    def of_one(self) -> Box:
        """The part of its first program."""
        return Box(self.access, self.argument, self.first, 1, self.counts, self.start, self.steps)

    def get(self, flat: torch.Tensor, scale: int = 1) -> torch.Tensor:
        return flat.as_strided(self.shape, [step * scale for step in self.steps], self.start * scale)

    def set(self, flat, values, scale=1):
        self.get(flat, scale).copy_(values)

    def of(self, values: torch.Tensor) -> torch.Tensor:
        """The lanes' part of a value of the whole batch."""
        if values.shape[0] > 1:
            values = values.narrow(0, self.first, self.count)
        for axis, count in enumerate(self.counts):
            if values.shape[axis + 1] > count:
                values = values.narrow(axis + 1, 0, count)
        return values

    def put(self, whole: torch.Tensor, part: torch.Tensor) -> None:
        """Write the lanes' part of a value of the whole batch."""
        self.of(whole).copy_(part)


@dataclass(eq=False)
class Blocks(Region):
    """As a Box, of programs whose blocks begin anywhere. Only addresses are wanted of them.

    starts: of each program, (programs,), its first element.
    """

    counts: tuple[int, ...]
    starts: np.ndarray
    steps: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.starts), *self.counts

    def spans(self) -> Spans:
        """Where neighbouring elements begin and end, (number, 2)."""
        starts = each_once(self.starts)
        step = int(np.diff(starts).min()) if len(starts) > 1 else 0
        first = np.diff(starts, prepend=starts[0] - step - 1) != step  # of a series with this distance
        lengths = np.diff(np.append(first.nonzero()[0], len(starts)))
        beginnings = starts[first]
        found = [
            _spans(beginnings[lengths == length], (step, *self.steps), (int(length), *self.counts))
            for length in each_once(lengths)
        ]
        return torch.cat(found)


@dataclass(eq=False)
class Lanes(Region):
    """Lanes one by one: (lanes,)."""

    programs: torch.Tensor
    lane: torch.Tensor
    at: torch.Tensor
    distinct: bool = False  # as far as one knows without looking at each

    @property
    def shape(self) -> tuple[int, ...]:
        return self.at.shape

    @property
    def places(self) -> torch.Tensor:
        """Of each lane, its place in a value of the whole batch."""
        return self.programs * self.access.size + self.lane

    def get(self, flat, scale=1):
        return flat.index_select(0, self.at * scale if scale > 1 else self.at)

    def set(self, flat, values, scale=1):
        flat[self.at * scale if scale > 1 else self.at] = values

    def of(self, values: torch.Tensor) -> torch.Tensor:
        if values.numel() == 1:
            return values.reshape(())
        whole = values.reshape(values.shape[0], self.access.size)
        return whole[self.programs if values.shape[0] > 1 else 0, self.lane]

    def put(self, whole, part):
        whole.view(-1)[self.places] = part

    def spans(self) -> Spans:
        """As those of Blocks. Only where just addresses are wanted is `at` the elements themselves."""
        return torch.stack((self.at, self.at + 1), dim=1)


def _spans(starts: Number, steps, counts) -> Spans:
    """Those of a lattice of elements from each of `starts`: what lies side by side is one of them."""
    length, apart = 1, []
    for step, count in sorted(zip(steps, counts)):
        if step <= length:
            length += (count - 1) * step
        else:
            apart.append((step, count))
    begin = lattice(starts, *zip(*apart)).reshape(-1) if apart else torch.as_tensor(starts).reshape(-1)
    return torch.stack((begin, begin + length), dim=1)


def outside(argument: Argument, offset: Number, counts, steps, size: int) -> bool | np.ndarray | None:
    """Whether a lattice of elements, `offset` bytes after the tensor, reaches outside: its corners say it.

    None if they do not: where a row of the lattice goes on into the next row of a tensor with gaps.
    """
    reach = sum((count - 1) * step for count, step in zip(counts, steps))
    bad = (offset < 0) | (offset + reach > argument.extent * argument.itemsize - size)
    bad |= (offset + argument.offset & size - 1) != 0
    if not argument.has_gaps:
        return bad
    if argument.itemsize != size:
        return None
    at, axes = offset // size, [(count - 1, step // size) for count, step in zip(counts, steps)]
    for stride, rows in argument.levels:
        down, axes = ([each for each in axes if (each[1] % stride == 0) is so] for so in (True, False))
        row = at // stride
        at = at - row * stride
        if np.any(at + sum(n * step for n, step in axes) >= stride):
            return None
        bad |= row + sum(n * (step // stride) for n, step in down) >= rows
    return bad | (at + sum(n * step for n, step in axes) >= argument.solid)


def distinct(steps, counts, starts: np.ndarray | None = None) -> bool:
    """Whether each element is once in a lattice, or in those that begin at `starts`."""
    reach = 0
    for step, count in sorted(zip(steps, counts)):
        if count > 1:
            if step <= reach:
                return False
            reach += (count - 1) * step
    return starts is None or bool((np.diff(ascending(starts)) > reach).all())


def ascending(numbers: np.ndarray) -> np.ndarray:
    """In order. Addresses of programs mostly are, or are a few runs that are: the stable sort merges these."""
    return numbers if (numbers[1:] >= numbers[:-1]).all() else np.sort(numbers, kind="stable")


def each_once(numbers: np.ndarray) -> np.ndarray:
    """The different numbers, in order. np.unique finds them by hashes, which collide for multiples of 2ⁿ."""
    numbers = ascending(numbers)
    return numbers[np.diff(numbers, prepend=numbers[:1] - 1) > 0]


def evenly(base: Number) -> int | None:
    """The distance from each program's number to that of the next one; None if there are several."""
    if isinstance(base, int):
        return 0
    step = int(base[1] - base[0])
    return step if len(base) == 2 or (base[1:] - base[:-1] == step).all() else None


def runs(live: np.ndarray, base: np.ndarray, limits: np.ndarray) -> Iterator[tuple[int, int]]:
    """Programs in a row, with equal counts and equal distances: (begin, end) in `live`."""
    count = len(live)
    apart = (live[1:] != live[:-1] + 1) | (limits[1:] != limits[:-1]).any(1)
    changes = (np.diff(base, 2).nonzero()[0] + 1).tolist()  # where the distance to the next one is another than before
    edges, begin, next_change = [*(apart.nonzero()[0] + 1).tolist(), count], 0, 0
    for edge in edges:
        while begin < edge:
            while next_change < len(changes) and changes[next_change] <= begin:
                next_change += 1
            change = changes[next_change] if next_change < len(changes) else count
            end = change + 1 if change < edge - 1 else edge
            yield begin, end
            begin = end
