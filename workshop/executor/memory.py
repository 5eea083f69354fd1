"""The memory of a launch: every lane of every access is checked against the exact view of its tensor, then counted.

An access is a list of regions. A Box is a rectangle of equally spaced elements for programs in a row, and is read and
written as one strided view. Lanes are any others, one by one.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from .lazy import Affine, Rect, column, plain
from .records import NOBODY, SEVERAL, WINDOW, Argument, Fault, Launch, Race, Storage, Undefined
from .vast import Pages, Vast

MAX_RACES = 32  # described one by one, for each launch; all are counted
MAX_UNDEFINED = 8
MOST_COMPARED = 1 << 26  # elements that are kept, to see whether a loop changes any
MOST_LANES = 1 << 22  # of one access that are written out where only addresses are wanted
WORTH_A_BOX = 2048  # lanes; smaller rectangles are faster lane by lane
# A mark says which lane wrote an element, and when: the clock, 11 bits of the block's shape, 21 of the lane.
_CLOCK, _SHAPE = 32, 21
_WHO = (1 << _CLOCK) - 1


@dataclass(frozen=True)
class Watch:
    """What is noted of each access: how often elements are read and written, and what nothing orders.

    tell: is called with each line that the kernel prints, when it does. most: accesses of a launch, each by all
    programs of a batch; TooLarge is raised where there are more. 0: any number.
    """

    counts: bool = False
    races: bool = False
    tell: Callable[[str], None] | None = None
    most: int = 0


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


class TooLarge(Exception):
    """The addresses of a large launch are not a few numbers for each program, or it takes more than Watch.most."""


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


class Memory:
    """All accesses of one launch. `programs`: the numbers of the programs that run, int64."""

    def __init__(self, launch: Launch, watch: Watch, programs: torch.Tensor, files: list[str], marks: bool = True):
        self.launch, self.watch, self.files = launch, watch, files
        self.programs = programs
        self.batch = torch.arange(programs.numel(), dtype=torch.int32)  # of those that run now, numbers in `programs`
        self.windows: list[Argument] = []
        self.storages: dict[int, Storage] = {}
        self.spans: dict[str, list[Spans]] = {}  # by argument: what was stored where only addresses are wanted
        self.accesses = 0  # all programs of a batch together are one
        self.changes = 0  # how often memory was written
        self.written: set[str] = set()  # the tensors that a store may reach
        self.only_addresses = False  # accesses are checked and counted, and memory is not touched
        self.marks = marks
        self.clock = 0
        self.barrier = torch.zeros(programs.numel() if marks else 0, dtype=torch.int64)
        self.released, self.acquired = {}, {}  # program -> the clock of its last releasing, acquiring atomic
        self._shapes: dict[tuple[int, ...], int] = {}

    def register(self, name: str, tensor: torch.Tensor) -> int:
        """Take a tensor as an argument. Returns the address that the kernel gets."""
        if isinstance(tensor, Vast):
            storage = self.storages.setdefault(-id(tensor.memory), tensor.memory)
        else:
            start = tensor.untyped_storage().data_ptr()
            if start not in self.storages or not start:
                self.storages[start] = Storage(tensor)
            storage = self.storages[start]
        storage.unit = min(storage.unit, tensor.element_size())
        argument = Argument(name, tensor, storage, len(self.windows))
        self.windows.append(argument)
        self.launch.arguments[name] = argument
        return argument.address

    def contents(self) -> list[torch.Tensor]:
        """What a store may change, as it is now; where that is much, only how often memory was written."""
        tensors = [argument for argument in self.windows if argument.name in self.written]
        flat = {each.storage.start or each.name: each.storage.typed(each.dtype) for each in tensors}.values()
        if sum(each.numel() for each in flat) > MOST_COMPARED:
            return [torch.tensor(self.changes)]
        return [each.clone() for each in flat]

    # --- where an access goes ---------------------------------------------------------------------------

    def regions(self, kind: str, address, shape, mask, on, dtype: torch.dtype, where) -> list[Region]:
        """The lanes of an access, checked. address: Affine or int64 tensor. mask: Rect, tensor or None. on: bool tensor
        of the programs that take part, or None. Raises Fault before anything is touched."""
        found = None
        if isinstance(address, Affine) and (mask is None or isinstance(mask, Rect)):
            found = self._boxes(kind, address, shape, mask, on, dtype, where)
        if found is None:
            found = self._lanes(kind, address, shape, mask, on, dtype, where)
        self.accesses += 1
        if self.watch.most and self.accesses > self.watch.most:
            raise TooLarge
        launch, total = self.launch, self.batch.numel() if on is None else int(on.sum())
        launch.loads += total * (kind == "load")
        launch.stores += total * (kind == "store")
        launch.atomics += total * (kind == "atomic")
        active = sum(region.lanes for region in found)
        launch.masked_lanes += total * torch.Size(shape).numel() - active
        for region in found:
            size = region.lanes * dtype.itemsize
            if kind != "store":
                launch.bytes_loaded += size
                region.argument.bytes_loaded += size
            if kind != "load":
                launch.bytes_stored += size
                region.argument.bytes_stored += size
            if self.only_addresses and kind == "store":
                self.spans.setdefault(region.argument.name, []).append(region.spans())
            if self.watch.counts:
                at = (region.start, region.steps) if isinstance(region, Box) else int(region.at.sum())
                launch.accesses = hash((launch.accesses, region.argument.name, region.lanes, at))
        return found

    def _boxes(self, kind, address: Affine, shape, mask: Rect | None, on, dtype, where) -> list[Region] | None:
        size, count = dtype.itemsize, self.batch.numel()
        steps = address._steps_in(tuple(shape)) if address.shape != tuple(shape) else address.steps
        if any(step % size or step < 0 for step in steps):
            return None
        live = torch.arange(count) if on is None else on.expand(count).nonzero().reshape(-1)
        base = address.base.expand(count)[live]
        limits = torch.empty((live.numel(), len(shape)), dtype=torch.int64)
        for axis, whole in enumerate(shape):
            given = mask.counts[axis] if mask else None
            limits[:, axis] = whole if given is None else given.expand(count)[live]
        if mask is not None:
            some = (limits > 0).all(dim=1)
            if not some.all():
                live, base, limits = live[some], base[some], limits[some]
        if not live.numel():
            return []
        found = []
        for begin, end in _runs(live, base, limits, shape):
            counts = tuple(int(n) for n in limits[begin])
            box = self._box(live[begin:end], base[begin:end], counts, steps, size)
            if isinstance(box, int):
                self._alone(kind, address, shape, mask, box, dtype, where)
                return None
            if box is None or kind != "load" and not box.distinct:
                return None
            found.append(box)
            if len(found) > 64 and sum(each.lanes for each in found) < WORTH_A_BOX * len(found):
                return None
        if len(found) > 4 and sum(box.lanes for box in found) < WORTH_A_BOX * len(found):
            return None
        return found

    def _box(self, live, base, counts, steps, size: int) -> Box | int | None:
        """The Box of programs in a row, or the number of the first that reaches outside; None if it cannot be one."""
        step, argument = int(base[1] - base[0]) if live.numel() > 1 else 0, self._argument(int(base[0]))
        if step % size or step < 0 or argument is None:
            return None
        if isinstance(argument.storage, Pages) and not self.only_addresses:
            return None
        outside = _outside(argument, base - argument.address, counts, steps, size)
        if outside is None:
            return None
        if outside.any():
            return int(live[outside.nonzero()[0]])
        start = (int(base[0]) - argument.address + argument.offset) // size
        return Box(argument, int(live[0]), live.numel(), counts, start, (step // size, *(s // size for s in steps)))

    def _alone(self, kind, address: Affine, shape, mask: Rect | None, program: int, dtype, where) -> None:
        """Look at one program of the batch lane by lane. Raises Fault if a lane is outside."""
        batch, self.batch = self.batch, self.batch[program : program + 1]
        alone = Affine(_only(address.base, program), address.steps, address.shape, address.dtype)
        own = mask and Rect(tuple(c if c is None else _only(c, program) for c in mask.counts), mask.shape)
        self._lanes(kind, alone, shape, own, None, dtype, where)
        self.batch = batch

    def _lanes(self, kind, address, shape, mask, on, dtype, where) -> list[Region]:
        count, size, block = self.batch.numel(), dtype.itemsize, torch.Size(shape)
        whole = (count, *block)
        if self.only_addresses and math.prod(whole) > MOST_LANES:
            raise TooLarge
        address, active = plain(address).expand(whole).reshape(-1), None
        if mask is not None:
            active = plain(mask).expand(whole)
        if on is not None:
            part = column(on.expand(count), len(block))
            active = part.expand(whole) if active is None else active & part
        if active is None:
            flat = torch.arange(address.numel())
        else:
            flat = active.reshape(-1).nonzero().reshape(-1)
            address = address[flat]
        if not flat.numel():
            return []
        per = max(block.numel(), 1)
        programs = torch.div(flat, per, rounding_mode="floor")
        lane = flat - programs * per
        window = (address + (1 << WINDOW - 1) >> WINDOW) - 1
        low, high = int(window.min()), int(window.max())
        found = []
        for number in [low] if low == high else window.unique().tolist():
            part = slice(None) if low == high else window == number
            argument = self.windows[number] if 0 <= number < len(self.windows) else None
            wanted, who, which = address[part], programs[part], lane[part]
            offset = wanted - (argument.address if argument else 0)
            good = self._inside(argument, offset, size)
            if not good.all():
                self._fail(kind, argument, offset, good, who, which, block, where)
            at = torch.div(offset + argument.offset, size, rounding_mode="floor")
            if isinstance(argument.storage, Pages):
                at = argument.storage.place(at)
            found.append(Lanes(argument, who, which, at, per))
        return found

    def _inside(self, argument: Argument | None, offset: torch.Tensor, size: int) -> torch.Tensor:
        if argument is None:
            return torch.zeros(offset.shape, dtype=torch.bool)
        good = (offset + argument.offset) % size == 0
        first = torch.div(offset, argument.itemsize, rounding_mode="floor")
        good &= argument.inside(first)
        if size > argument.itemsize:
            good &= argument.inside(first + size // argument.itemsize - 1)
        return good

    def _argument(self, address: int) -> Argument | None:
        number = (address + (1 << WINDOW - 1) >> WINDOW) - 1
        return self.windows[number] if 0 <= number < len(self.windows) else None

    def _fail(self, kind, argument, offset, good, programs, lanes, block, where):
        bad = (~good).nonzero().reshape(-1)
        first = int(bad[0])
        program = int(programs[first])
        lane, place = int(lanes[first]), []
        for size in reversed(block):
            lane, rest = divmod(lane, size)
            place.append(rest)
        line, code = self.text(where)
        about = argument.locate(int(offset[first])) if argument else {}
        raise Fault(kind, self.launch.kernel, self.program_at(program), tuple(block), tuple(reversed(place)),
                    int((programs[bad] == program).sum()), line, code, **about)  # fmt: skip

    # --- words for what was found -----------------------------------------------------------------------

    def text(self, where) -> tuple[int | None, str]:
        """The line of a location, and its text."""
        if where is None or where.file < 0:
            return None, ""
        return where.line, linecache.getline(self.files[where.file], where.line).strip()

    def program_at(self, number: int) -> tuple[int, int, int] | None:
        """The place in the grid of a program of the batch; None for a negative number."""
        return None if number < 0 else self.place(int(self.batch[number]))

    def place(self, number: int) -> tuple[int, int, int] | None:
        """The place in the grid of one of `programs`, by its number there; None for a negative number."""
        if number < 0:
            return None
        x, y, _ = self.launch.grid
        program = int(self.programs[number])
        return program % x, program // x % y, program // (x * y)

    # --- accesses ---------------------------------------------------------------------------------------

    def load(self, region: Region, dtype: torch.dtype, shape, where) -> torch.Tensor:
        """The elements of a region, in its own shape. What a Box gives is a view of memory."""
        storage = region.argument.storage
        if storage.defined is not None:
            self._check_defined(region, dtype, where)
        if self.watch.counts or self.watch.races:
            self._note_load(region, dtype, shape, where)
        return region.get(storage.typed(dtype))

    def store(self, region: Region, dtype: torch.dtype, values: torch.Tensor, shape, where) -> None:
        """Store `values`, in the shape of the region."""
        storage = region.argument.storage
        flat, scale = storage.typed(dtype), dtype.itemsize // storage.unit
        if self.watch.counts or self.watch.races:
            self._note_store(region, dtype, values, shape, where)
        if storage.defined is not None:
            region.set(storage.defined, True, scale)
        region.set(flat, values)
        self.changes += 1

    def _check_defined(self, region: Region, dtype, where) -> None:
        storage = region.argument.storage
        good = region.get(storage.defined, dtype.itemsize // storage.unit)
        if not good.all() and len(self.launch.undefined) < MAX_UNDEFINED:
            place = tuple((~good).nonzero()[0].tolist())
            self.undefined("read", region.argument.name, region.program_of(place), where)

    def undefined(self, kind: str, argument: str | None, program: int, where) -> None:
        if len(self.launch.undefined) < MAX_UNDEFINED:
            about = Undefined(kind, self.launch.kernel, argument, self.program_at(program), *self.text(where))
            if not any(
                (u.kind, u.line, u.argument) == (about.kind, about.line, about.argument) for u in self.launch.undefined
            ):
                self.launch.undefined.append(about)

    def _once(self, region: Region, shape) -> Region:
        """The region with each element once for each program: lanes of one load that share an element count once."""
        if isinstance(region, Box):
            counts = tuple(1 if step == 0 else n for n, step in zip(region.counts, region.steps[1:]))
            box = Box(region.argument, region.first, region.count, counts, region.start, region.steps)
            inner = Box(box.argument, 0, 1, counts, 0, (0, *box.steps[1:]))
            if inner.distinct:
                return box
            region = region.one_by_one(shape)
        units = region.argument.storage.units
        keys = (region.programs * units + region.at).unique()
        programs = torch.div(keys, units, rounding_mode="floor")
        return Lanes(region.argument, programs, programs, keys - programs * units, region.size)

    @staticmethod
    def _add_one(region: Region, counts: torch.Tensor, scale: int) -> None:
        if region.distinct:
            region.view(counts, scale).add_(1)
            return
        one = (
            Box(region.argument, 0, 1, region.counts, region.start, (0, *region.steps[1:]))
            if isinstance(region, Box)
            else region
        )
        if one.distinct and region.steps[0] == 0:  # every program the same elements
            one.view(counts, scale).add_(region.count)
        else:
            at = region.elements().expand(region.get(counts, scale).shape).reshape(-1)
            counts.index_add_(0, at * scale, torch.ones(at.numel(), dtype=counts.dtype))

    def _note_load(self, region: Region, dtype, shape, where) -> None:
        storage, scale = region.argument.storage, dtype.itemsize // region.argument.storage.unit
        once = self._once(region, shape) if self.watch.counts else region
        if self.watch.counts:
            self._add_one(region, storage.reads, scale)
            line = where.line if where else None
            if line not in storage.passes:
                storage.passes[line] = torch.zeros(storage.units, dtype=torch.int32)
            if storage.written:
                fresh = once.get(storage.writer, scale) == NOBODY
                if not fresh.all():
                    lanes = once.one_by_one(shape) if isinstance(once, Box) else once
                    keep = fresh.reshape(-1).nonzero().reshape(-1)
                    once = Lanes(lanes.argument, lanes.programs[keep], lanes.lane[keep], lanes.at[keep], lanes.size)
            self._add_one(once, storage.passes[line], scale)
        if not self.watch.races:
            return
        who = region.numbers(self.batch)
        if storage.written:
            authors, before = _authors(region.get(storage.writer, scale)), region.get(storage.mark, scale)
            clash = (authors != who) & (authors != NOBODY)
            if clash.any():
                clash &= ~self._ordered(authors, before, who)
            if self.marks and (mine := authors == who).any():
                marks = self._marks(region, shape) if shape else None
                clash = clash | mine & self._by_another_lane(region, before, marks)
            self._add_races("write-read", region, clash, authors, who, dtype, where)
        if region.argument.name in self.written:
            self._note_readers(region if region.distinct else region.one_by_one(shape), storage, scale)

    def _note_readers(self, region: Region, storage: Storage, scale: int) -> None:
        who, readers = region.numbers(self.batch), region.get(storage.reader, scale)
        if self.clock:
            region.set(storage.array("read_at", torch.int64), torch.tensor(self.clock), scale)
        region.set(storage.reader, torch.where((readers == NOBODY) | (readers == who), who, SEVERAL), scale)
        if not region.distinct:
            several = (region.get(storage.reader, scale) != who).nonzero().reshape(-1)
            storage.reader[region.at[several] * scale] = SEVERAL
        storage.read = True

    def _note_store(self, region: Region, dtype, values, shape, where) -> None:
        storage, scale = region.argument.storage, dtype.itemsize // region.argument.storage.unit
        who = region.numbers(self.batch)
        if self.watch.counts:
            self._add_one(region, storage.writes, scale)
        if not self.watch.races:
            if self.watch.counts:
                region.set(storage.writer, who.expand(region.get(storage.writer, scale).shape), scale)
                storage.written = True
            return
        marks = self._marks(region, shape) if self.marks else None
        clash = None
        if storage.written:
            authors, before = _authors(region.get(storage.writer, scale)), region.get(storage.mark, scale)
            clash = (authors != who) & (authors != NOBODY)
            if clash.any():
                clash &= ~self._ordered(authors, before, who)
            mine = (authors == who) & self._by_another_lane(region, before, marks) if self.marks else None
            if clash.any() or mine is not None and mine.any():
                same = _same_bits(region.get(storage.typed(dtype)), values)
                wrong = clash if mine is None else clash | mine & ~same
                self._add_races("write-write", region, wrong, authors, who, dtype, where, same)
        if storage.read:
            readers, when = region.get(storage.reader, scale), None
            if self.released:
                when = region.get(storage.array("read_at", torch.int64), scale)
            read = (readers != who) & (readers != NOBODY)
            if clash is not None:
                read &= ~clash
            if read.any():
                self._add_races(
                    "read-write", region, read & ~self._ordered_reads(readers, when, who), readers, who, dtype, where
                )
        region.set(storage.writer, who.expand(region.get(storage.writer, scale).shape), scale)
        if self.marks:
            region.set(storage.mark, marks.expand(region.get(storage.mark, scale).shape), scale)
        storage.written = True
        if not region.distinct:
            self._several_lanes(region, dtype, values, who, scale, where)

    def _several_lanes(self, region: Lanes, dtype, values, who, scale, where) -> None:
        """Lanes of one store that share an element: of several programs, or of one program with other values."""
        _, place, times = region.at.unique(return_inverse=True, return_counts=True)
        if times.numel() == region.at.numel():
            return
        values = values.expand(region.at.shape)
        last = torch.zeros(times.numel(), dtype=torch.int64).scatter_(0, place, torch.arange(place.numel()))[place]
        authors = who[last]
        same = _same_bits(values[last], values)
        lost = (authors != who) | ~same
        if lost.any():
            self._add_races("write-write", region, lost, who, authors, dtype, where, same)

    # --- atomics ----------------------------------------------------------------------------------------

    def atomic(self, region: Region, dtype, shape, semantics: str, where, change: Callable) -> torch.Tensor:
        """One atomic operation of each lane, one after the other. Returns the old values, in the lanes' order.

        change(old, chosen): the new values of those lanes.
        """
        region = region.one_by_one(shape)
        storage = region.argument.storage
        flat, scale = storage.typed(dtype), dtype.itemsize // storage.unit
        if storage.defined is not None:
            self._check_defined(region, dtype, where)
        if self.watch.counts:
            self._add_one(region, storage.reads, scale)
            self._add_one(region, storage.writes, scale)
        if self.watch.races:
            self._note_atomic(region, dtype, shape, where, scale)
        self._synchronise_by_atomic(region, semantics)
        order = torch.argsort(region.at, stable=True)
        at = region.at[order]
        starts = torch.ones(at.shape, dtype=torch.bool)
        starts[1:] = at[1:] != at[:-1]
        begin = starts.nonzero().reshape(-1)
        turn = torch.arange(at.numel()) - begin[torch.cumsum(starts, 0) - 1]
        old = torch.empty(at.shape, dtype=dtype)
        for now in range(int(turn.max()) + 1):
            chosen = order[turn == now]
            before = flat[region.at[chosen]]
            old[chosen] = before
            after = change(before, chosen)
            self.changes += not torch.equal(_bits(after), _bits(before))
            flat[region.at[chosen]] = after
        return old

    def _note_atomic(self, region: Lanes, dtype, shape, where, scale) -> None:
        storage, who = region.argument.storage, region.numbers(self.batch)
        author, marks = _atomic(who), self._marks(region, shape) if self.marks else None
        if storage.written:
            found, before = region.get(storage.writer, scale), region.get(storage.mark, scale)
            authors = _authors(found)
            clash = (authors != who) & (found >= 0)
            if clash.any():
                clash &= ~self._ordered(authors, before, who)
            if self.marks:
                clash |= (found == who) & self._by_another_lane(region, before, marks)
            self._add_races("write-read", region, clash, authors, who, dtype, where)
            author = torch.where(found == who, who, author)  # its own plain store still races with others
        region.set(storage.writer, author, scale)
        if self.marks:
            _, place, times = region.at.unique(return_inverse=True, return_counts=True)
            marks = torch.where(times[place] > 1, marks | _WHO, marks)  # of several lanes, none can read it back
            region.set(storage.mark, marks, scale)
        storage.written = True

    def _synchronise_by_atomic(self, region: Lanes, semantics: str) -> None:
        if not self.watch.races or semantics == "RELAXED":
            return
        for program in self.batch[region.programs.unique()].tolist():
            self.clock += 1
            if semantics in ("RELEASE", "ACQUIRE_RELEASE"):
                self.released[program] = self.clock
            if semantics in ("ACQUIRE", "ACQUIRE_RELEASE"):
                self.acquired[program] = self.clock

    # --- what orders accesses ---------------------------------------------------------------------------

    def synchronise(self, on) -> None:
        """The running programs pass a barrier."""
        if self.marks:
            self.clock += 1
            self.barrier[(self.batch if on is None else self.batch[on.expand(self.batch.shape)]).long()] = self.clock

    def _marks(self, region: Region, shape) -> torch.Tensor:
        number = self._shapes.setdefault(tuple(shape), len(self._shapes) % (1 << _CLOCK - _SHAPE))
        return region.lane_numbers(shape) + (self.clock << _CLOCK | number << _SHAPE)

    def _by_another_lane(self, region: Region, before, marks) -> torch.Tensor:
        """Which elements, written by the same program, were written by another lane since its last barrier."""
        recent = before >> _CLOCK >= region.numbers(self.barrier[self.batch.long()])
        return recent if marks is None else recent & ((before ^ marks) & _WHO != 0)

    def _ordered(self, authors, before, who) -> torch.Tensor:
        """Which earlier writes of other programs were released before `who` acquired."""
        if not self.acquired or not self.released:
            return torch.zeros((), dtype=torch.bool)
        released, acquired = self._atomic_times()
        freed = released[authors.long()]
        return (before >> _CLOCK < freed) & (freed < acquired[who.long()])

    def _ordered_reads(self, readers, when, who) -> torch.Tensor:
        """Which earlier reads were released before `who` acquired. Of several readers only the last time is known."""
        if when is None or not self.acquired:
            return torch.zeros((), dtype=torch.bool)
        released, acquired = self._atomic_times()
        freed = released[readers.long()]
        freed = torch.where(readers == SEVERAL, max(self.released.values()), freed)
        return (when < freed) & (freed <= acquired[who.long()])

    def _atomic_times(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The clock of each program's last releasing and acquiring atomic; -1 without one."""
        count = self.programs.numel() + 2  # NOBODY and SEVERAL are the two numbers at the end
        released, acquired = torch.full((count,), -1), torch.full((count,), -1)
        released[list(self.released)] = torch.tensor(list(self.released.values()))
        acquired[list(self.acquired)] = torch.tensor(list(self.acquired.values()))
        return released, acquired

    def _add_races(self, kind, region: Region, clash, first, second, dtype, where, same=None) -> None:
        if not clash.any():
            return
        launch, argument = self.launch, region.argument
        whole = region.get(argument.storage.writer, dtype.itemsize // argument.storage.unit).shape
        places = clash.expand(whole).nonzero()
        launch.race_count += len(places)
        line, code = self.text(where)
        first, second = (each.expand(whole) for each in (first, second))
        for place in map(tuple, places[: MAX_RACES - len(launch.races)].tolist()):
            element = region.element_of(place)
            if isinstance(argument.storage, Pages):
                element = int(argument.storage.origin(torch.tensor(element)))
            element = (element * dtype.itemsize - argument.offset) // argument.itemsize
            launch.races.append(
                Race(
                    kind,
                    launch.kernel,
                    argument.name,
                    argument.index(element),
                    self.place(int(first[place])),
                    self.place(int(second[place])),
                    bool(same.expand(whole)[place]) if same is not None else None,
                    line,
                    code,
                )  # fmt: skip
            )


def _outside(argument: Argument, offsets: torch.Tensor, counts, steps, size: int) -> torch.Tensor | None:
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


def _only(numbers: torch.Tensor, program: int) -> torch.Tensor:
    return numbers if numbers.numel() == 1 else numbers[program : program + 1]


def _runs(live, base, limits, shape) -> Iterator[tuple[int, int]]:
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


def _bits(values: torch.Tensor) -> torch.Tensor:
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return values.contiguous().view(kinds[values.element_size()])


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return _bits(one) == _bits(other.to(one.dtype).expand(one.shape))


def _atomic(program: torch.Tensor) -> torch.Tensor:
    """The author of an element that a program changed with an atomic: a number below those of `records`."""
    return -3 - program


def _authors(writer: torch.Tensor) -> torch.Tensor:
    """The programs that wrote elements last, with atomics or without; NOBODY for the others."""
    return torch.where(writer <= -3, -3 - writer, writer)
