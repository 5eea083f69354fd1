"""What an execution notes of a launch: its tensors and their counts, races, undefined reads, the access that failed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from workshop import advice

from .values import places, quotient

WINDOW = 44  # bits of address space for each tensor, half of it before the tensor
NOBODY, SEVERAL = -1, -2  # who wrote or read an element, where it is not one program


class Stepping:
    """How a block of lanes goes through a tensor of `shape` and `stride`: by `steps`, in elements, along its axes."""

    @property
    def odd_axis(self) -> int | None:
        """The first axis of the block along which the address grows by no stride of the tensor, a matrix or more."""
        strides = [step for size, step in zip(self.shape, self.stride) if size > 1]
        if len(strides) < 2 or len(self.steps) != len(self.block):
            return None
        return next((i for i, s in enumerate(self.steps) if s and self.block[i] > 1 and s not in strides), None)


@dataclass(unsafe_hash=True)
class Fault(Stepping, IndexError):
    """A load, store or atomic reached outside of its tensor: the first lane that did, before memory was touched.

    `element` counts elements of the tensor's dtype from its first one; `index` is its position in the tensor,
    where a coordinate past `shape` is outside ((): before the start). `place` is "gap" (between the rows of
    a strided view), "past the end" or "before the start", by `distance` elements (0 in a gap), or "nowhere"
    (the pointer belongs to no argument; then `argument` is ""). `lanes`: how many lanes of that program are outside.
    `steps`: see `memory.Access`. `masked`: whether the line has a mask, which these lanes pass. `line`: 0 if unknown.
    `round`: of the innermost loop around it, from 1 on; 0 outside of loops. `loop`: the line of that loop.
    """

    kind: str
    kernel: str
    program: tuple[int, ...]
    block: tuple[int, ...]
    lane: tuple[int, ...]
    lanes: int
    line: int = 0
    code: str = ""
    argument: str = ""
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    element: int = 0
    index: tuple[int, ...] = ()
    place: str = "nowhere"
    distance: int = 0
    steps: tuple[int, ...] = ()
    masked: bool = False
    round: int = 0
    loop: int = 0

    def __post_init__(self):
        fit = len(self.lane) == len(self.block) and len(self.stride) == len(self.shape)
        placed = self.place != "gap" or self.index and self.shape
        if self.kind not in advice.VERBS or not (self.program and fit and placed):
            raise ValueError("a fault that cannot be")

    @property
    def number(self) -> int:
        """The lane, by its number in the block."""
        return functools.reduce(lambda number, axis: number * axis[0] + axis[1], zip(self.block, self.lane), 0)

    def __str__(self) -> str:
        return f"{advice.outside(self)[0]} In {self.kernel}, line {self.line or '?'}: {self.code}"


class Stopped(Exception):
    """What a kernel must not do: `words`, which of its programs did, the line and its text. `kind`: its name."""

    kind = ""

    def __init__(self, words: str, kernel: str, program: tuple[int, ...], line: int, code: str):
        self.words, self.kernel, self.program, self.line, self.code = words, kernel, program, line, code
        who = f"{kernel}, program {advice.program_in_words(program)}" if program else kernel
        super().__init__(f"{advice.stopped(self.kind, words)[0]} In {who}, line {line or '?'}: {code}")


class FalsePromise(Stopped, ValueError):
    """A promise to the compiler is not true: tl.multiple_of, max_contiguous, max_constancy or assume."""

    kind = "false-promise"


class NeverEnds(Stopped, RuntimeError):
    """A loop, or a wait for another program, that can never end."""

    kind = "never-ends"


class TakesTooLong(Stopped, RuntimeError):
    """It used up its time, and may end or not."""

    kind = "too-long"


class DeviceAssert(Stopped, AssertionError):
    """tl.device_assert failed."""

    kind = "device-assert"


class IllegalInstruction(Stopped, RuntimeError):
    """A card ends the kernel here with "an illegal instruction was encountered"."""

    kind = "illegal-instruction"


@dataclass(frozen=True)
class Race:
    """One element that two programs of a launch touched, at least one of them writing, and that nothing orders.

    `kind` is "write-write", "read-write" (read first) or "write-read" (written first). `same_value` says of a
    write-write race whether both wrote the same bits. A program that is () means several. If both programs are the
    same, two lanes of it touched the element. `Launch.races_by_kind` counts: how many elements of the argument were
    written more than once, which share of all that is, and the most writes to one element.
    """

    kind: str
    argument: str
    index: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    same_value: bool
    line: int
    code: str
    elements: int = 0
    share: float = 0.0
    writers: int = 0

    @property
    def within(self) -> bool:
        """Whether lanes of one program race, not programs."""
        return self.first == self.second


@dataclass(frozen=True)
class Undefined:
    """The kernel used what nothing defined.

    kind: "read" (a load of an element that nothing wrote), "store" or "condition" (they depend on lanes of a load that
    its mask switched off). argument: the tensor that was read or written; "" for a condition.
    """

    kind: str
    kernel: str
    argument: str
    program: tuple[int, ...]
    line: int
    code: str


@dataclass(frozen=True)
class Steps(Stepping):
    """How a line goes through a tensor: the shape of its block, and the steps of `memory.Access`."""

    argument: str
    line: int
    code: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    block: tuple[int, ...]
    steps: tuple[int, ...]


class Storage:
    """One block of memory during one launch. `unit`: bytes of the smallest element of a tensor in it.

    ARRAYS have one number for each unit: `writer` and `reader` are numbers of programs, `mark` says which lane wrote
    when. They are made when they are needed first. `defined` is None where everything is.
    """

    ARRAYS = {"writer": (torch.int32, NOBODY), "reader": (torch.int32, NOBODY), "mark": (torch.int64, 0),
              "read_at": (torch.int64, 0), "reads": (torch.int32, 0), "writes": (torch.int32, 0)}  # fmt: skip

    def __init__(self, tensor: torch.Tensor):
        self.memory = tensor.untyped_storage()
        self.start, self.nbytes = self.memory.data_ptr(), self.memory.nbytes()
        self.unit = tensor.element_size()
        self.written = self.read = False
        self.defined: torch.Tensor | None = None
        self.passes: dict[int | None, torch.Tensor] = {}
        self._typed: dict[torch.dtype, torch.Tensor] = {}

    @property
    def units(self) -> int:
        return self.nbytes // self.unit

    def narrow(self, size: int) -> None:
        """Elements of `size` bytes are touched, too."""
        self.unit = min(self.unit, size)

    def typed(self, dtype: torch.dtype) -> torch.Tensor:
        """All of it as numbers of one type, flat."""
        if dtype not in self._typed:
            size = self.nbytes // dtype.itemsize
            self._typed[dtype] = torch.empty(0, dtype=dtype).set_(self.memory, 0, (size,), (1,))
        return self._typed[dtype]

    def __getattr__(self, name: str) -> torch.Tensor:
        if name not in self.ARRAYS:
            raise AttributeError(name)
        dtype, fill = self.ARRAYS[name]
        vars(self)[name] = torch.full((self.units,), fill, dtype=dtype)
        return vars(self)[name]

    def place(self, at: torch.Tensor) -> torch.Tensor:
        """Where elements lie."""
        return at

    def origin(self, place: torch.Tensor) -> torch.Tensor:
        """Which elements lie at these places."""
        return place


PAGE = 12  # bits of a page's elements


class Pages(Storage):
    """Memory too large to hold: pages of 2**PAGE elements, made where a program touches them.

    So a launch over 10⁹ elements can be run for some of its programs. tensor: any view of this memory, which itself is
    never touched. content(at): the elements at these distances from its start, int64 of any shape -> values; None:
    nothing is defined. Arrays and `typed` hold the pages one behind the other, in the order in which they were made.
    """

    def __init__(self, tensor: torch.Tensor, content: Callable | None = None):
        super().__init__(tensor)
        self.content = content
        dtype = torch.int8 if tensor.dtype == torch.bool else tensor.dtype  # as a kernel reads and writes it
        self.table = torch.full(((super().units >> PAGE) + 1,), -1, dtype=torch.int32)
        self.pages = torch.empty(0, dtype=torch.int64)  # their numbers
        self.pool = torch.empty(0, dtype=dtype)
        self.defined = torch.empty(0, dtype=torch.bool) if content is None else None

    @property
    def units(self) -> int:
        return self.pool.numel()

    def narrow(self, size: int) -> None:
        """Pages hold whole elements; narrower ones are in another tensor."""

    def typed(self, dtype: torch.dtype) -> torch.Tensor:
        if dtype.itemsize != self.unit:
            raise TypeError(f"a pointer to {self.pool.dtype} is used as one to {dtype}")
        return self.pool.view(dtype)

    def place(self, at):
        page = at >> PAGE
        slots = self.table.take(page)
        if (slots < 0).any():
            self._make(page[slots < 0].unique())
            slots = self.table.take(page)
        return (slots.long() << PAGE) + (at & (1 << PAGE) - 1)

    def origin(self, place):
        return (self.pages[place >> PAGE] << PAGE) + (place & (1 << PAGE) - 1)

    def _make(self, pages: torch.Tensor) -> None:
        first, last = len(self.pages), len(self.pages) + len(pages)
        self.table[pages] = torch.arange(first, last, dtype=torch.int32)
        self.pages = torch.cat([self.pages, pages])
        if last << PAGE > self.units:
            self._grow(max(last << PAGE, 2 * self.units))
        if self.content is not None:
            at = (pages[:, None] << PAGE) + torch.arange(1 << PAGE)
            self.pool[first << PAGE : last << PAGE] = self.content(at).reshape(-1).to(self.pool.dtype)

    def _grow(self, units: int) -> None:
        """Room for more pages, in steps that double: few copies in all."""
        more, arrays = units - self.units, vars(self)
        for name in arrays.keys() & {"pool", "defined", *self.ARRAYS}:
            if (array := arrays[name]) is not None:
                fill = self.ARRAYS.get(name, (None, 0))[1]
                arrays[name] = torch.cat([array, array.new_full((more,), fill)])
        for line, array in self.passes.items():
            self.passes[line] = torch.cat([array, array.new_zeros(more)])

    def found(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What was written: elements, as distances from the first, ascending, their values, and who wrote them."""
        place = places(self.writer != NOBODY)
        at = self.origin(place)
        order = torch.from_numpy(np.argsort(at.numpy()))
        return at[order], self.pool[place[order]], self.writer[place[order]]


class Argument:
    """A tensor argument of a launch: name, shape, stride (in elements), dtype, and where its elements may lie.

    loaded, stored: what all programs load and store, where only addresses are wanted (memory.Spans).
    """

    def __init__(self, name: str, tensor: torch.Tensor, storage: Storage, number: int):
        self.name, self.dtype, self.storage = name, tensor.dtype, storage
        self.shape, self.stride = tuple(tensor.shape), tuple(tensor.stride())
        self.itemsize = tensor.element_size()
        self.offset = max(tensor.data_ptr() - storage.start, 0) if tensor.numel() else 0  # bytes
        # Kernels see an address range of each tensor's own. The low bits stay: alignment is part of the language.
        self.address = (number + 1 << WINDOW) | (tensor.data_ptr() & 0xFFF)
        self.extent = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride)) if tensor.numel() else 0
        self.bytes_loaded = self.bytes_stored = 0
        self.loaded: tuple[torch.Tensor, ...] = ()
        self.stored: tuple[torch.Tensor, ...] = ()
        # Elements are inside if each quotient is: from the outermost axis with gaps, (stride, size); then a solid rest.
        self.levels: list[tuple[int, int]] = []
        self.solid = 1
        for stride, size in sorted((s, n) for s, n in zip(self.stride, self.shape) if n > 1 and s > 0):
            if not self.levels and stride <= self.solid:
                self.solid += (size - 1) * stride
            else:
                self.levels.insert(0, (stride, size))

    def holds(self, offset: torch.Tensor, size: int) -> torch.Tensor:
        """Which numbers of `size` bytes, so many bytes behind the first one, lie in the tensor and are aligned."""
        first = quotient(offset, self.itemsize)
        good = (offset + self.offset & size - 1 == 0) & self.inside(first)
        return good & self.inside(first + size // self.itemsize - 1) if size > self.itemsize else good

    def inside(self, elements: torch.Tensor) -> torch.Tensor:
        """Which elements (distances from the first one) belong to the tensor."""
        good = (elements >= 0) & (elements < self.extent)
        for stride, size in self.levels:
            row = quotient(elements, stride)
            good &= row < size
            elements = elements - row * stride
        return good & (elements < self.solid) if self.levels else good

    def index(self, element: int) -> tuple[int, ...]:
        """Coordinates of the element at that distance from the first; () before the start."""
        if element < 0:
            return ()
        coordinates = [0] * len(self.shape)
        for axis in sorted(range(len(self.shape)), key=lambda axis: -self.stride[axis]):
            if self.stride[axis] > 0:
                coordinates[axis], element = divmod(element, self.stride[axis])
        return tuple(coordinates)

    def locate(self, offset: int) -> dict:
        """The fields of a Fault for the place `offset` bytes after the first element."""
        element, last = offset // self.itemsize, self.extent - 1
        if 0 <= element <= last:
            place, distance = "gap", 0
        elif element > last:
            place, distance = "past the end", element - last
        else:
            place, distance = "before the start", -element
        where = {"element": element, "index": self.index(element), "place": place, "distance": distance}
        return {"argument": self.name, "shape": self.shape, "stride": self.stride, **where}

    def of(self, array: torch.Tensor) -> np.ndarray:
        """The part of an array of the storage that belongs to this tensor, in the tensor's shape."""
        if not self.extent:
            return np.zeros(self.shape, array.numpy().dtype)
        scale = self.itemsize // self.storage.unit
        strides = [stride * scale for stride in self.stride]
        return array.as_strided(self.shape, strides, self.offset // self.storage.unit).clone().numpy()

    @property
    def reads(self) -> np.ndarray:
        """How often this launch read each element, through any argument: int32, the tensor's shape."""
        return self.of(self.storage.reads)

    @property
    def writes(self) -> np.ndarray:
        """How often this launch wrote each element, through any argument: int32, the tensor's shape."""
        return self.of(self.storage.writes)


@dataclass
class Launch:
    """What one launch did. Bytes count active lanes; `masked_lanes` are the others.

    `storing`: by program, whether it stored an element. `steps`: by line and argument.
    """

    kernel: str
    grid: tuple[int, int, int] = (0, 0, 0)
    arguments: dict[str, Argument] = field(default_factory=dict)
    loads: int = 0
    stores: int = 0
    atomics: int = 0
    bytes_loaded: int = 0
    bytes_stored: int = 0
    masked_lanes: int = 0
    races: list[Race] = field(default_factory=list)
    undefined: list[Undefined] = field(default_factory=list)
    storing: torch.Tensor | None = None
    steps: dict[tuple, Steps] = field(default_factory=dict)

    @property
    def races_by_kind(self) -> list[Race]:
        """The first race of each argument and kind, between programs and within one; with counts, which need `reads`
        and `writes`."""
        found: dict[tuple, Race] = {}
        for race in self.races:
            key = race.argument, race.kind, race.within
            if key in found:
                found[key] = replace(found[key], same_value=found[key].same_value and race.same_value)
                continue
            writes = self.arguments[race.argument].writes
            several, most = int((writes > 1).sum()), int(writes.max(initial=0))
            found[key] = replace(race, elements=several, share=several / max(writes.size, 1), writers=most)
        return list(found.values())
