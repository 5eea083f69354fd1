"""The memory of a launch: every lane of every access is checked against the exact view of its tensor, then counted.

An access is a list of regions. A Box is a rectangle of equally spaced elements for programs in a row, and is read and
written as one strided view. Lanes are any others, one by one.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from .arithmetic import bits
from .program import Location
from .records import NOBODY, SEVERAL, WINDOW, Argument, Fault, Launch, Race, Steps, Storage, Undefined
from .values import UNKNOWN, Affine, Number, Rect, TooLarge, column, lattice, of, places, plain, quotient, row_major

# --- accesses, and where their lanes lie --------------------------------------------------------------------

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
        first = self.first if len(values) > 1 else 0
        return values[first : first + self.count, *map(slice, self.counts)]

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
    if not argument.levels:
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


def evenly(base: Number) -> bool:
    """Whether the distance from each program's number to that of the next one is the same."""
    return isinstance(base, int) or bool((base[1:] - base[:-1] == base[1] - base[0]).all())


def one(x: Number, place: int) -> int:
    """That of one program."""
    return x if isinstance(x, int) else int(x[place])


def runs(programs: np.ndarray, starts: np.ndarray, limits: list[Number]) -> list[tuple[int, int]]:
    """Programs in a row, with equal limits and the distance that most neighbours have: (begin, end) in `programs`."""
    steps = np.diff(starts)
    usual = np.partition(steps, len(steps) // 2)[len(steps) // 2] if len(steps) else 0
    apart = (np.diff(programs) != 1) | (steps != usual)
    for n in limits:
        if not isinstance(n, int):
            apart |= n[1:] != n[:-1]
    return [*itertools.pairwise([0, *(np.flatnonzero(apart) + 1).tolist(), len(programs)])]


# --- memory ------------------------------------------------------------------------------------------------

MAX_RACES = 32  # of a launch are described
MAX_UNDEFINED = 8
MOST_COMPARED = 1 << 26  # elements that are kept, to see whether a loop changes any
MOST_READ = 1 << 20  # whole numbers that one access reads where only addresses are wanted
LANES_OF_ONE = 1 << 13  # lanes: a limit of 3000 accesses holds for some seconds
MOST_BOXES = 64
DENSE = 16  # places of a table that finds lanes of one element, for each lane
WORTH_A_BOX = 2048  # lanes; smaller rectangles are faster lane by lane
# A mark says which lane wrote an element, and when: the clock, 11 bits of the block's shape, 21 of the lane.
_CLOCK, _SHAPE = 32, 21
_WHO = (1 << _CLOCK) - 1


@dataclass(frozen=True)
class Watch:
    """What is noted of each access: how often elements are read and written, and what nothing orders.

    passes: reads are counted by the line that loads (Storage.passes), not all together. tell: is called with each line
    that the kernel prints, when it does. most: accesses of a launch, each by all programs of a batch, where one that is
    written out lane by lane is as many as it has LANES_OF_ONE; TooLarge is raised where there are more. 0: any number.
    """

    counts: bool = False
    races: bool = False
    tell: Callable[[str], None] | None = None
    most: int = 0
    passes: bool = False


class Memory:
    """All accesses of one launch. programs: the numbers of those that run, int64. pages: see launch.execute."""

    def __init__(self, launch: Launch, watch: Watch, programs: torch.Tensor, pages=()):
        self.launch, self.watch = launch, watch
        self.programs = programs
        launch.storing = torch.zeros(programs.numel(), dtype=torch.bool)
        self.batch = torch.arange(programs.numel(), dtype=torch.int32)  # of those that run now, numbers in `programs`
        self.windows: list[Argument] = []
        self.storages: dict[int, Storage] = {each.start: each for each in pages}
        self.accesses = 0  # all programs of a batch together are one
        self.weight = 1  # what an access counts, where many rounds of a loop run at once
        self.changes = 0  # how often memory was written
        self.printed = 0  # lines that the kernel has printed
        self.written: set[str] = set()  # the tensors that a store may reach
        self.in_pages = bool(pages)  # neighbours may lie anywhere
        self.only_addresses = False  # accesses are checked and counted, and memory is not touched
        self.clock = 0
        # The clock of each program's last barrier, and of its last releasing and acquiring atomic; -1 without one. The
        # last two are NOBODY's and SEVERAL's.
        self.barrier, self.released, self.acquired = torch.full((3, programs.numel() + 2 if watch.races else 0), -1)
        self._shapes: dict[tuple[int, ...], int] = {}

    def register(self, name: str, tensor: torch.Tensor) -> int:
        """Take a tensor as an argument. Returns the address that the kernel gets."""
        start = tensor.untyped_storage().data_ptr()
        if start not in self.storages or not start:
            self.storages[start] = Storage(tensor)
        storage = self.storages[start]
        storage.narrow(tensor.element_size())
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

    def noted(self) -> list[tuple]:
        """What was counted, where only addresses are wanted: for `forget`."""
        return [(about, dict(vars(about))) for about in (self, self.launch, *self.windows)]

    def forget(self, noted: list[tuple]) -> None:
        """Counts nothing of what came after `noted`."""
        for about, before in noted:
            vars(about).update(before)

    # --- where an access goes ---------------------------------------------------------------------------

    def regions(self, access: Access) -> list[Region]:
        """The lanes of an access, checked. Raises Fault before anything is touched."""
        found = self._by_corners(access)
        if found is None:
            found = self._lanes(access)
        self._count(access, found)
        return found

    def _count(self, access: Access, found: list[Region]) -> None:
        self.accesses += self.weight
        if self.watch.most and self.accesses > self.watch.most:
            raise TooLarge
        launch, kind = self.launch, access.kind
        total = self.batch.numel() if access.on is None else int(access.on.expand(self.batch.shape).sum())
        launch.loads += total * (kind == "load")
        launch.stores += total * (kind == "store")
        launch.atomics += total * (kind == "atomic")
        launch.masked_lanes += total * access.size - sum(region.lanes for region in found)
        for region in found:
            argument, size = region.argument, region.lanes * access.dtype.itemsize
            for about in (launch, argument):
                about.bytes_loaded += size * (kind != "store")
                about.bytes_stored += size * (kind != "load")
            if self.only_addresses:
                if kind == "load":
                    argument.loaded += (region.spans(),)
                else:
                    argument.stored += (region.spans(),)
            if (key := (access.where, argument.name)) not in launch.steps:
                where = argument.name, *self.text(access.where), argument.shape, argument.stride
                launch.steps[key] = Steps(*where, access.shape, access.steps)

    def _by_corners(self, access: Access) -> list[Region] | None:
        """The lanes of evenly spaced addresses, checked by the corners of each program's block; None if others."""
        address, mask, size = access.address, access.mask, access.dtype.itemsize
        if not isinstance(address, Affine) or not isinstance(mask, Rect | None):
            return None
        steps = address.parts
        if any(step % size or step < 0 for step in steps):
            return None
        live, base = None, address.base
        parts = mask.parts if mask else (None,) * len(access.shape)
        limits = [n if part is None else part for part, n in zip(parts, access.shape)]
        if access.on is not None or not all(n if isinstance(n, int) else n.all() for n in limits):
            live = np.broadcast_to(True if access.on is None else access.on.numpy(), self.batch.numel())
            for n in limits:
                live = live & (n > 0)
            live = live.nonzero()[0]
            if not len(live):
                return []
            base, *limits = (n if isinstance(n, int) else n[live] for n in (base, *limits))
        argument = self._argument(one(base, 0))
        if argument is None:
            return None
        offset = base - argument.address
        bad = outside(argument, offset, limits, steps, size)
        if bad is None:
            return None
        if np.any(bad):
            first = int(np.argmax(bad))
            self._lanes(access, torch.tensor([first if live is None else live[first]]))  # says which lane; raises Fault
            return None  # each program may have a tensor of its own
        start = (offset + argument.offset) // size
        return self._placed(access, argument, live, start, limits, tuple(step // size for step in steps))

    def _placed(self, access: Access, argument: Argument, live, start: Number, limits: list, steps) -> list[Region]:
        """Blocks of the programs `live` (None: all), each from its `start` on, in the form that is fastest."""
        count, overlap = self.batch.numel(), access.kind == "load"  # whether boxes may
        if self.only_addresses:
            return self._blocks(access, argument, count if live is None else len(live), start, limits, steps)
        if not self.in_pages:
            programs, found = np.arange(count) if live is None else live, []
            alike = live is None and all(isinstance(n, int) for n in limits) and evenly(start)
            series = [(0, count)] if alike else runs(programs, np.broadcast_to(start, len(programs)), limits)
            for begin, end in series if len(series) <= MOST_BOXES else ():
                first, shape = one(start, begin), tuple(one(n, begin) for n in limits)
                step = (one(start, end - 1) - first) // max(end - begin - 1, 1)
                found.append(Box(access, argument, int(programs[begin]), end - begin, shape, first, (step, *steps)))
            fit = found and all(box.steps[0] >= 0 and (overlap or box.distinct) for box in found)
            if fit and (len(found) <= 4 or sum(box.lanes for box in found) >= WORTH_A_BOX * len(found)):
                return found
        rows = torch.arange(count) if live is None else torch.from_numpy(live)
        mask = access.mask and (access.mask if live is None else Rect(tuple(limits), access.shape)).written
        flat, programs, lane = _numbered(access, rows, mask)
        at = lattice(start, steps, access.shape).expand(len(rows), *access.shape).reshape(-1)
        at = argument.storage.place(at if mask is None else at.index_select(0, flat))
        alone = not overlap and distinct(steps, access.shape, np.broadcast_to(start, len(rows)))
        return [Lanes(access, argument, programs, lane, at, alone)]

    def _blocks(self, access: Access, argument: Argument, count: int, start, limits, steps) -> list[Region]:
        """The blocks of so many programs, those of the same shape together."""
        starts, radix = np.broadcast_to(start, count), row_major([n + 1 for n in access.shape])
        shape, found = sum(n * step for n, step in zip(limits, radix)), []
        if isinstance(shape, int):
            return [Blocks(access, argument, tuple(limits), starts, steps)]
        for each in each_once(shape):
            counts = tuple(int(each) // step % (n + 1) for step, n in zip(radix, access.shape))
            found.append(Blocks(access, argument, counts, starts[shape == each], steps))
        return found

    def _lanes(self, access: Access, live: torch.Tensor | None = None) -> list[Region]:
        """The access lane by lane. live: of these programs of the batch only."""
        address, mask, count, size = access.address, access.mask, self.batch.numel(), access.dtype.itemsize
        if live is None and access.on is not None:
            live = places(access.on.expand(count))
        if live is None:
            live = torch.arange(count)
        else:
            address, mask = of(address, live), None if mask is None else of(mask, live)
        if self.only_addresses:
            if live.numel() * access.size > MOST_LANES:
                raise TooLarge
            self.accesses += live.numel() * access.size // LANES_OF_ONE
        whole = (live.numel(), *access.shape)
        address = plain(address).expand(whole).reshape(-1)
        flat, programs, lane = _numbered(access, live, None if mask is None else plain(mask))
        if not flat.numel():
            return []
        address = address if mask is None else address.index_select(0, flat)
        window = address + (1 << WINDOW - 1) >> WINDOW
        low, high = int(window.min()), int(window.max())
        found = []
        for number in [low] if low == high else window.unique().tolist():
            part = slice(None) if low == high else window == number
            argument = self._argument(number << WINDOW)
            wanted, who, which = address[part], programs[part], lane[part]
            offset = wanted - (argument.address if argument else 0)
            good = argument.holds(offset, size) if argument else torch.zeros(offset.shape, dtype=torch.bool)
            if not good.all():
                self._fail(access, argument, offset, ~good, who, which)
            at = quotient(offset + argument.offset, size)
            at = at if self.only_addresses else argument.storage.place(at)  # which may make pages
            found.append(Lanes(access, argument, who, which, at))
        return found

    def _argument(self, address: int) -> Argument | None:
        number = (address + (1 << WINDOW - 1) >> WINDOW) - 1
        return self.windows[number] if 0 <= number < len(self.windows) else None

    def _fail(self, access: Access, argument, offset, bad, programs, lanes):
        first = int(bad.nonzero()[0])
        program, lane = int(programs[first]), tuple(map(int, np.unravel_index(int(lanes[first]), access.shape)))
        about = argument.locate(int(offset[first])) if argument else {}
        about |= {"steps": access.steps, "masked": access.mask is not None}
        raise Fault(access.kind, self.launch.kernel, self.program_at(program), access.shape, lane,
                    int((programs[bad] == program).sum()), *self.text(access.where), **about)  # fmt: skip

    # --- words for what was found -----------------------------------------------------------------------

    def text(self, where) -> tuple[int, str]:
        """The line of a location, and its text; 0 and "" if it is not known."""
        return (where.line, linecache.getline(where.file, where.line).strip()) if where else (0, "")

    def program_at(self, number: int) -> tuple[int, ...]:
        """The place in the grid of a program of the batch."""
        return self.place(int(self.batch[number]))

    def place(self, number: int) -> tuple[int, ...]:
        """The place in the grid of one of `programs`, by its number there; () for a negative number."""
        if number < 0:
            return ()
        x, y, _ = self.launch.grid
        program = int(self.programs[number])
        return program % x, program // x % y, program // (x * y)

    # --- accesses ---------------------------------------------------------------------------------------

    def load(self, region: Region) -> torch.Tensor:
        """The elements of a region, in its own shape. What a Box gives is a view of memory."""
        self._check_defined(region)
        if self.watch.passes:
            self._count_passes(region)
        elif self.watch.counts:
            _add_one(region, region.storage.reads)
        if self.watch.races:
            self._find_races("load", region)
            if region.argument.name in self.written:
                self._note_readers(region if region.distinct else region.one_by_one())
        return region.read()

    def whole_numbers(self, access: Access, other) -> torch.Tensor | None:
        """What a load gives, where only addresses are wanted: integers from tensors that are known; None for others."""
        count = self.batch.numel()
        if access.dtype.is_floating_point or other is UNKNOWN or count * access.size > MOST_READ:
            return None
        fill = 0 if other is None else plain(other).to(access.dtype)
        found = torch.zeros((count, *access.shape), dtype=access.dtype) + fill
        for lanes in self._lanes(access):
            if lanes.argument.name in self.written or not getattr(lanes.storage, "content", None):
                return None
            lanes.put(found, lanes.storage.content(lanes.at).to(access.dtype))
        return found

    def store(self, region: Region, values: torch.Tensor) -> None:
        """Store `values`, in the shape of the region."""
        storage, marks = region.storage, None
        if self.watch.counts:
            _add_one(region, storage.writes)
        if self.watch.races:
            marks = self._marks(region)
            self._find_races("store", region, values, marks)
        if self.watch.counts or self.watch.races or self.in_pages:
            self._note_writers(region, region.whose(self.batch), marks)
            if self.watch.races and not region.distinct:
                self._several_lanes(region, values)
        if storage.defined is not None:
            region.note(storage.defined, True)
        region.set(storage.typed(region.access.dtype), values)
        self.changes += 1
        self.launch.storing[region.whose(self.batch)] = True

    def atomic(self, region: Lanes, semantics: str, change: Callable, given: list[torch.Tensor]) -> torch.Tensor:
        """One atomic operation of each lane, one after the other. Returns the old values, in the lanes' order.

        change(old, *given): the new values.
        """
        self._check_defined(region)
        if self.watch.counts:
            _add_one(region, region.storage.reads)
            _add_one(region, region.storage.writes)
        if self.watch.races:
            self._note_atomic(region)
            self._synchronise_by_atomic(region, semantics)
        at, order = region.at.sort(stable=True)
        turn = torch.arange(at.numel()) - torch.searchsorted(at, at)  # as many lanes of the same element come before
        flat = region.storage.typed(region.access.dtype)
        old = torch.empty(at.shape, dtype=flat.dtype)
        for now in range(int(turn.max()) + 1):
            chosen = order[turn == now]
            before = flat[region.at[chosen]]
            old[chosen] = before
            after = change(before, *(each[chosen] for each in given))
            self.changes += not torch.equal(bits(after), bits(before))
            flat[region.at[chosen]] = after
        return old

    def _check_defined(self, region: Region) -> None:
        if region.storage.defined is None:
            return
        good = region.noted(region.storage.defined)
        if not good.all():
            self.undefined("read", region.argument.name, region.program_of(~good), region.access.where)

    def undefined(self, kind: str, argument: str, program: int, where) -> None:
        found = self.launch.undefined
        about = Undefined(kind, self.launch.kernel, argument, self.program_at(program), *self.text(where))
        known = {(each.kind, each.line, each.argument) for each in found}
        if len(found) < MAX_UNDEFINED and (about.kind, about.line, about.argument) not in known:
            found.append(about)

    # --- how often ----------------------------------------------------------------------------------------

    def _count_passes(self, region: Region) -> None:
        """By line, the reads of elements that this launch has not written: lanes of a program count once."""
        storage, line = region.storage, region.access.where.line if region.access.where else None
        if line not in storage.passes:
            storage.passes[line] = torch.zeros(storage.units, dtype=torch.int32)
        once = _once(region)
        if storage.written:
            fresh = once.noted(storage.writer) == NOBODY
            if not fresh.all():
                lanes, keep = once.one_by_one(), places(fresh)
                kept = (part[keep] for part in (lanes.programs, lanes.lane, lanes.at))
                once = Lanes(region.access, region.argument, *kept)
        _add_one(once, storage.passes[line])

    # --- races --------------------------------------------------------------------------------------------

    def _note_readers(self, region: Region) -> None:
        storage, who = region.storage, region.whose(self.batch)
        readers = region.noted(storage.reader)
        if self.clock:
            region.note(storage.read_at, torch.tensor(self.clock))
        region.note(storage.reader, torch.where((readers == NOBODY) | (readers == who), who, SEVERAL))
        if not region.distinct:
            several = places(region.noted(storage.reader) != who)
            storage.reader[region.at[several] * region.scale] = SEVERAL
        storage.read = True

    def _note_writers(self, region: Region, writers: torch.Tensor, marks) -> None:
        region.note(region.storage.writer, writers)
        if marks is not None:
            region.note(region.storage.mark, marks)
        region.storage.written = True

    def _find_races(self, kind: str, region: Region, values=None, marks=None) -> None:
        """Elements that other programs, or other lanes of the same one, have touched, and that nothing orders.

        values: what a store writes. marks: of its lanes; for a load they are made here.
        """
        storage, who, clash = region.storage, region.whose(self.batch), torch.zeros((), dtype=torch.bool)
        if storage.written and ((found := region.noted(storage.writer)) != NOBODY).any():
            before = region.noted(storage.mark)
            authors = torch.where(found <= -3, -3 - found, found)  # see _note_atomic
            clash = (authors != who) & (found >= 0 if kind == "atomic" else authors != NOBODY)
            if clash.any():
                clash &= ~self._ordered(authors, before >> _CLOCK, who)
            same, mine = None, (found if kind == "atomic" else authors) == who
            if mine.any():
                if kind == "load":
                    marks = self._marks(region) if region.access.shape else None
                mine &= self._by_another_lane(region, before, marks)
            if kind == "store" and (clash.any() or mine.any()):
                same = _same_bits(region.read(), values)
                mine = mine & ~same
            what = "write-write" if kind == "store" else "write-read"
            self._add_races(what, region, clash | mine, authors, who, same)
        if kind == "store" and storage.read:
            self._races_with_readers(region, clash, who)

    def _races_with_readers(self, region: Region, clash, who) -> None:
        """Where another program has read what is written now. clash: where one has written it, which is said."""
        storage = region.storage
        readers = region.noted(storage.reader)
        read = (readers != who) & (readers != NOBODY) & ~clash
        if read.any():
            ordered = self._ordered(readers, region.noted(storage.read_at), who)
            self._add_races("read-write", region, read & ~ordered, readers, who)

    def _several_lanes(self, region: Lanes, values) -> None:
        """Lanes of one store that share an element: of several programs, or of one program with other values."""
        at, lanes = region.at, torch.arange(region.at.numel())
        if int(at.max()) > DENSE * at.numel():
            _, at = at.unique(return_inverse=True)
        last = torch.empty(int(at.max()) + 1, dtype=torch.int64).scatter_(0, at, lanes)[at]
        if torch.equal(last, lanes):
            return
        values, who = values.expand(region.at.shape), region.whose(self.batch)
        same = _same_bits(values[last], values)
        self._add_races("write-write", region, (who[last] != who) | ~same, who, who[last], same)

    def _note_atomic(self, region: Lanes) -> None:
        storage, who = region.storage, region.whose(self.batch)
        author, marks = -3 - who, self._marks(region)  # so noted, it is one by an atomic
        self._find_races("atomic", region, marks=marks)
        if storage.written:
            author = torch.where(region.noted(storage.writer) == who, who, author)  # its own plain store still races
        _, place, times = region.at.unique(return_inverse=True, return_counts=True)
        marks = torch.where(times[place] > 1, marks | _WHO, marks)  # of several lanes, none can read it back
        self._note_writers(region, author, marks)

    def _synchronise_by_atomic(self, region: Lanes, semantics: str) -> None:
        programs = self.batch[region.programs.unique()].long()
        for name, times in (("RELEASE", self.released), ("ACQUIRE", self.acquired)):
            if name in semantics:
                times[programs] = self.clock + 1 + torch.arange(programs.numel())
        self.clock += programs.numel() * (semantics != "RELAXED")

    def synchronise(self, on) -> None:
        """The running programs pass a barrier."""
        if self.watch.races:
            self.clock += 1
            self.barrier[(self.batch if on is None else self.batch[on.expand(self.batch.shape)]).long()] = self.clock

    def _marks(self, region: Region) -> torch.Tensor:
        number = self._shapes.setdefault(region.access.shape, len(self._shapes) % (1 << _CLOCK - _SHAPE))
        return region.lane + (self.clock << _CLOCK | number << _SHAPE)

    def _by_another_lane(self, region: Region, before, marks) -> torch.Tensor:
        """Which elements, written by the same program, were written by another lane since its last barrier."""
        recent = before >> _CLOCK >= self.barrier[region.whose(self.batch).long()]
        return recent if marks is None else recent & ((before ^ marks) & _WHO != 0)

    def _ordered(self, others, when, who) -> torch.Tensor:
        """Which accesses of other programs were released before `who` acquired. Of SEVERAL only the last time is known.

        when: the clock at these accesses.
        """
        freed = torch.where(others == SEVERAL, self.released.max(), self.released[others.long()])
        return (when < freed) & (freed <= self.acquired[who.long()])

    def _add_races(self, kind: str, region: Region, clash, first, second, same=None) -> None:
        if not clash.any():
            return
        launch, argument, whole = self.launch, region.argument, region.shape
        places = clash.expand(whole).nonzero()
        first, second = first.expand(whole), second.expand(whole)
        for place in map(tuple, places[: MAX_RACES - len(launch.races)].tolist()):
            element = int(argument.storage.origin(region.at.expand(region.shape)[place]))
            element = (element * region.access.dtype.itemsize - argument.offset) // argument.itemsize
            programs = self.place(int(first[place])), self.place(int(second[place]))
            equal = same is not None and bool(same.expand(whole)[place])
            about = kind, argument.name, argument.index(element), *programs, equal
            launch.races.append(Race(*about, *self.text(region.access.where)))


def _numbered(access: Access, live: torch.Tensor, mask: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
    """The lanes that a mask lets through: among all lanes of the programs `live`, and by program and lane."""
    whole = (live.numel(), *access.shape)
    flat = torch.arange(math.prod(whole)) if mask is None else places(mask.expand(whole))
    row = quotient(flat, access.size)
    return flat, live.index_select(0, row), flat - row * access.size


def _once(region: Region) -> Region:
    """The region with each element once for each program: lanes of one load that share an element count once."""
    if region.distinct or isinstance(region, Box) and region.of_one().distinct:
        return region
    lanes, units = region.one_by_one(), region.storage.units
    keys = (lanes.programs * units + lanes.at).unique()
    programs = quotient(keys, units)
    return Lanes(region.access, region.argument, programs, programs, keys - programs * units)


def _add_one(region: Region, counts: torch.Tensor) -> None:
    if isinstance(region, Box) and region.distinct:
        region.get(counts, region.scale).add_(1)
    elif isinstance(region, Box) and region.steps[0] == 0 and region.of_one().distinct:
        region.of_one().get(counts, region.scale).add_(region.count)
    else:
        at = region.at.expand(region.shape).reshape(-1)
        counts.index_add_(0, at * region.scale, torch.ones(at.numel(), dtype=counts.dtype))


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return bits(one) == bits(other.to(one.dtype).expand(one.shape))
