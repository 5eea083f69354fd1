"""Where the lanes of an access lie: a Box, which is read and written as one strided view, or Lanes one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from .lazy import column
from .records import Argument
from .vast import Pages

MOST_LANES = 1 << 22  # of one access that are written out where only addresses are wanted
Spans = torch.Tensor  # elements of a storage: (number, 2), the first one and the one after the last


def covered(spans: list[Spans], begin: int, end: int) -> int:
    """How many of the elements from `begin` to `end` lie in at least one span."""
    if not spans:
        return 0
    ordered = torch.cat(spans).clamp(begin, end)
    ordered = ordered[ordered[:, 0].argsort()]
    reach = torch.cummax(ordered[:, 1], dim=0).values
    before = torch.cat([torch.tensor([begin]), reach[:-1]])
    return int((reach - torch.maximum(ordered[:, 0], before)).clamp(min=0).sum())


class Box:
    """Programs first, first + 1, … (numbers in the batch), each with the first `counts` elements of the block's axes.

    start: the first element, counted in elements of the access in its storage. steps: to the next program, and along
    each axis.
    """

    __slots__ = ("argument", "first", "count", "counts", "start", "steps")

    def __init__(self, argument, first, count, counts, start, steps):
        self.argument, self.first, self.count, self.counts = argument, first, count, counts
        self.start, self.steps = start, steps

    @property
    def lanes(self) -> int:
        return self.count * torch.Size(self.counts).numel()

    @property
    def distinct(self) -> bool:
        """Whether no two lanes share an element."""
        reach = 0
        for step, size in sorted(zip(self.steps, (self.count, *self.counts))):
            if size > 1:
                if step <= reach:
                    return False
                reach += (size - 1) * step
        return True

    def view(self, flat: torch.Tensor, scale: int = 1) -> torch.Tensor:
        steps = [step * scale for step in self.steps]
        return flat.as_strided((self.count, *self.counts), steps, self.start * scale)

    def get(self, flat, scale=1):
        return self.view(flat, scale)

    def set(self, flat, values, scale=1):
        self.view(flat, scale).copy_(values)

    def of(self, values: torch.Tensor) -> torch.Tensor:
        """The lanes' part of a value of the whole batch."""
        if values.shape[0] > 1:
            values = values.narrow(0, self.first, self.count)
        for axis, count in enumerate(self.counts):
            if values.shape[axis + 1] > count:
                values = values.narrow(axis + 1, 0, count)
        return values

    def numbers(self, batch: torch.Tensor) -> torch.Tensor:
        """One number for each program, in the shape of the lanes."""
        return column(batch.narrow(0, self.first, self.count), len(self.counts))

    def lane_numbers(self, shape: tuple[int, ...]) -> torch.Tensor:
        number = torch.zeros((1,) * (len(shape) + 1), dtype=torch.int64)
        for axis, (size, count) in enumerate(zip(shape, self.counts)):
            line = torch.arange(count).reshape((count,) + (1,) * (len(shape) - axis - 1))
            number = number * size + line
        return number

    def program_of(self, place: tuple[int, ...]) -> int:
        return self.first + place[0]

    def element_of(self, place: tuple[int, ...]) -> int:
        return self.start + sum(i * step for i, step in zip(place, self.steps))

    def elements(self) -> torch.Tensor:
        axes = len(self.steps)
        found = torch.full((1,) * axes, self.start)
        for axis, (step, size) in enumerate(zip(self.steps, (self.count, *self.counts))):
            found = found + (torch.arange(size) * step).reshape((size,) + (1,) * (axes - axis - 1))
        return found

    def spans(self) -> Spans:
        """Where neighbouring elements begin and end, (number, 2)."""
        length = self.counts[-1] if self.counts and self.steps[-1] == 1 else 1
        counts = self.counts if length == 1 else (*self.counts[:-1], 1)
        begin = Box(self.argument, 0, self.count, counts, self.start, self.steps).elements().reshape(-1)
        return torch.stack((begin, begin + length), dim=1)

    def one_by_one(self, shape: tuple[int, ...]) -> Lanes:
        whole = (self.count, *self.counts)
        programs = torch.arange(self.first, self.first + self.count).reshape((-1,) + (1,) * len(shape))
        parts = programs, self.lane_numbers(shape), self.elements()
        return Lanes(self.argument, *(part.expand(whole).reshape(-1) for part in parts), torch.Size(shape).numel())


class Lanes:
    """Lanes one by one: int64 of (lanes,) each.

    programs: numbers in the batch. lane: in the block of `size` lanes. at: elements of the access, in its storage.
    """

    __slots__ = ("argument", "programs", "lane", "at", "size")

    def __init__(self, argument, programs, lane, at, size):
        self.argument, self.programs, self.lane, self.at, self.size = argument, programs, lane, at, size

    distinct = False

    @property
    def lanes(self) -> int:
        return self.at.numel()

    def get(self, flat, scale=1):
        return flat[self.at * scale if scale > 1 else self.at]

    def set(self, flat, values, scale=1):
        flat[self.at * scale if scale > 1 else self.at] = values

    def of(self, values: torch.Tensor) -> torch.Tensor:
        if values.numel() == 1:
            return values.reshape(())
        count = int(self.programs[-1]) + 1 if values.shape[0] == 1 else values.shape[0]
        if values[0].numel() == self.size:
            whole = values.reshape(values.shape[0], self.size)
            return whole[self.programs if values.shape[0] > 1 else 0, self.lane]
        raise ValueError(f"{tuple(values.shape)} is not of {count} programs with {self.size} lanes")

    def numbers(self, batch: torch.Tensor) -> torch.Tensor:
        return batch[self.programs]

    def lane_numbers(self, shape):
        return self.lane

    def program_of(self, place):
        return int(self.programs[place[0]])

    def element_of(self, place):
        return int(self.at[place[0]])

    def elements(self):
        return self.at

    def one_by_one(self, shape):
        return self

    def spans(self):
        at = self.at
        if isinstance(self.argument.storage, Pages):
            at = self.argument.storage.origin(at)
        return torch.stack((at, at + 1), dim=1)


Region = Box | Lanes


def outside(argument: Argument, offsets: torch.Tensor, counts, steps, size: int) -> torch.Tensor | None:
    """Which programs reach outside, whose blocks begin `offsets` bytes after the tensor; None if that is too much."""
    reach = [(count - 1) * step for count, step in zip(counts, steps)]
    bad = (offsets < 0) | (offsets + sum(reach) > argument.extent * argument.itemsize - size)
    bad |= (offsets + argument.offset) % size != 0
    if not argument.has_gaps:
        return bad
    first = torch.div(offsets, size, rounding_mode="floor")
    if argument.itemsize != size:
        return None
    if sum(reach) == (counts[-1] - 1) * size:  # neighbours: outside, or in two rows, if the last one is
        last = first + counts[-1] - 1
        rows = [torch.div(each, argument.levels[0][0], rounding_mode="floor") for each in (first, last)]
        if len(argument.levels) == 1:
            return bad | ~argument.inside(first) | ~argument.inside(last) | (rows[0] != rows[1])
    if offsets.numel() * math.prod(counts) > MOST_LANES:
        return None
    elements = column(first, len(counts))
    for axis, (count, step) in enumerate(zip(counts, steps)):
        line = torch.arange(count) * (step // size)
        elements = elements + line.reshape((count,) + (1,) * (len(counts) - axis - 1))
    return bad | ~argument.inside(elements).reshape(offsets.numel(), -1).all(dim=1)


def only(numbers: torch.Tensor, program: int) -> torch.Tensor:
    return numbers if numbers.numel() == 1 else numbers[program : program + 1]


def runs(live, base, limits, shape) -> Iterator[tuple[int, int]]:
    """Programs in a row, with equal counts and equal distances: (begin, end) in `live`."""
    count = live.numel()
    breaks = torch.zeros(count, dtype=torch.bool)
    if count > 1:
        breaks[1:] = (live[1:] != live[:-1] + 1) | (limits[1:] != limits[:-1]).any(dim=1)
    edges = [*breaks.nonzero().reshape(-1).tolist(), count]
    begin = 0
    for edge in edges:
        while begin < edge:
            end = edge
            if edge - begin > 2:
                steps = base[begin + 1 : edge] - base[begin : edge - 1]
                other = (steps != steps[0]).nonzero()
                if other.numel():
                    end = begin + int(other[0]) + 1
            yield begin, end
            begin = end
