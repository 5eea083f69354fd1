"""The memory of a launch: every lane of every access is checked against the exact view of its tensor, then counted.

An access is a list of regions. A Box is a rectangle of equally spaced elements for programs in a row, and is read and
written as one strided view. Lanes are any others, one by one.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from .lazy import Affine, Rect, column, plain
from .records import NOBODY, SEVERAL, WINDOW, Argument, Fault, Launch, Race, Storage, Undefined
from .regions import MOST_LANES, Box, Lanes, Region, Spans, only, outside, runs
from .vast import Pages, Vast

MAX_RACES = 32  # described one by one, for each launch; all are counted
MAX_UNDEFINED = 8
MOST_COMPARED = 1 << 26  # elements that are kept, to see whether a loop changes any
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


class TooLarge(Exception):
    """The addresses of a large launch are not a few numbers for each program, or it takes more than Watch.most."""


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
        for begin, end in runs(live, base, limits, shape):
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
        bad = outside(argument, base - argument.address, counts, steps, size)
        if bad is None:
            return None
        if bad.any():
            return int(live[bad.nonzero()[0]])
        start = (int(base[0]) - argument.address + argument.offset) // size
        return Box(argument, int(live[0]), live.numel(), counts, start, (step // size, *(s // size for s in steps)))

    def _alone(self, kind, address: Affine, shape, mask: Rect | None, program: int, dtype, where) -> None:
        """Look at one program of the batch lane by lane. Raises Fault if a lane is outside."""
        batch, self.batch = self.batch, self.batch[program : program + 1]
        alone = Affine(only(address.base, program), address.steps, address.shape, address.dtype)
        own = mask and Rect(tuple(c if c is None else only(c, program) for c in mask.counts), mask.shape)
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
        who, marks = region.numbers(self.batch), None
        if self.watch.counts:
            self._add_one(region, storage.writes, scale)
        if self.watch.races:
            marks = self._marks(region, shape) if self.marks else None
            clash = self._races_with_writers(region, dtype, values, marks, who, scale, where)
            if storage.read:
                self._races_with_readers(region, clash, who, dtype, scale, where)
        region.set(storage.writer, who.expand(region.get(storage.writer, scale).shape), scale)
        if marks is not None:
            region.set(storage.mark, marks.expand(region.get(storage.mark, scale).shape), scale)
        storage.written = True
        if self.watch.races and not region.distinct:
            self._several_lanes(region, dtype, values, who, scale, where)

    def _races_with_writers(self, region: Region, dtype, values, marks, who, scale, where) -> torch.Tensor:
        """Where another program has written what is written now."""
        storage = region.argument.storage
        if not storage.written:
            return torch.zeros((), dtype=torch.bool)
        authors, before = _authors(region.get(storage.writer, scale)), region.get(storage.mark, scale)
        clash = (authors != who) & (authors != NOBODY)
        if clash.any():
            clash &= ~self._ordered(authors, before, who)
        mine = (authors == who) & self._by_another_lane(region, before, marks) if self.marks else None
        if clash.any() or mine is not None and mine.any():
            same = _same_bits(region.get(storage.typed(dtype)), values)
            wrong = clash if mine is None else clash | mine & ~same
            self._add_races("write-write", region, wrong, authors, who, dtype, where, same)
        return clash

    def _races_with_readers(self, region: Region, clash, who, dtype, scale, where) -> None:
        """Where another program has read what is written now. clash: where one has written it, which is said."""
        storage = region.argument.storage
        readers = region.get(storage.reader, scale)
        when = region.get(storage.array("read_at", torch.int64), scale) if self.released else None
        read = (readers != who) & (readers != NOBODY) & ~clash
        if read.any():
            read &= ~self._ordered_reads(readers, when, who)
            self._add_races("read-write", region, read, readers, who, dtype, where)

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
