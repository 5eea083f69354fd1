"""Finds accesses of a launch that nothing orders: by two programs, or by two lanes of one program.

Programs run in any order, unless a releasing atomic of one and an acquiring atomic of the other order them. The lanes
of one program run on many threads: between two of them only `tl.debug_barrier` orders memory. A lane may read back
what it wrote itself, in a block of the same shape. A number (no block) is written by one thread and read by all; the
interpreter does not tell it from a block of one element.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .memory_record import ATOMIC, NOBODY, SEVERAL, Argument, Launch, Race

MAX_RACES = 32  # described one by one, per launch; all are counted
# A mark says which lane wrote an element, and when: 32 bits of the clock, 11 of the block's shape, 21 of the lane.
_CLOCK, _SHAPE = 32, 21
_WHO = (1 << _CLOCK) - 1
_LANE = (1 << _SHAPE) - 1

Elements = np.ndarray | slice


class Order:
    """What orders the accesses of one launch. The clock counts barriers and releasing atomics."""

    def __init__(self):
        self.clock = self.barrier = 0
        self.released: dict[int, int] = {}  # program -> the clock after its last releasing atomic
        self.acquired: set[int] = set()  # programs with an acquiring atomic
        self._shapes: dict[tuple[int, ...], int] = {}

    def marks(self, shape: tuple[int, ...], lanes: np.ndarray) -> np.ndarray:
        number = self._shapes.setdefault(shape, len(self._shapes) % (1 << _CLOCK - _SHAPE))
        return lanes + (self.clock << _CLOCK | number << _SHAPE)

    def synchronise(self) -> None:
        """The running program passed a barrier."""
        self.clock += 1
        self.barrier = self.clock

    def atomic(self, program: int, semantics: str) -> None:
        if semantics in ("RELEASE", "ACQUIRE_RELEASE"):
            self.clock += 1
            self.released[program] = self.clock
        if semantics in ("ACQUIRE", "ACQUIRE_RELEASE"):
            self.acquired.add(program)

    def by_another_lane(self, before: np.ndarray, marks: np.ndarray | None) -> np.ndarray:
        """Which elements, written by the running program, were written by another lane since the last barrier.

        marks: of the lanes that access them now; None if every thread does.
        """
        recent = before >> _CLOCK >= self.barrier
        return recent if marks is None else recent & ((before ^ marks) & _WHO != 0)

    def orders(self, authors: np.ndarray, before: np.ndarray, program: int) -> np.ndarray:
        """Which earlier writes of other programs were released before `program` acquired."""
        ordered = np.zeros(authors.shape, bool)
        if program in self.acquired:
            for author in set(authors.tolist()) & self.released.keys():
                ordered |= (authors == author) & (before >> _CLOCK < self.released[author])
        return ordered

    def orders_reads(self, readers: np.ndarray, program: int) -> np.ndarray:
        """Which earlier reads come before what `program` does now. The time of a read is not known."""
        if program not in self.acquired or not self.released:
            return np.zeros(readers.shape, bool)
        return np.isin(readers, [SEVERAL, *self.released])


class Races:
    """The races of one launch. Its methods are told of each access before memory is touched.

    at: the elements, as distances from the storage's start, or a slice where they lie in a row. shape, lanes: of the
    block, and its active lanes there.
    """

    def __init__(self, launch: Launch, where: Callable[[], tuple], same_bits: Callable, program_at: Callable):
        self.launch, self.order = launch, Order()
        self._where, self._same_bits, self._program_at = where, same_bits, program_at

    def load(self, argument: Argument, at: Elements, program: int, shape, lanes) -> Elements:
        """Returns the elements that hold what they held before the launch."""
        storage, untouched = argument.storage, at
        if storage.written:
            authors, before = _authors(storage.writer[at]), storage.mark[at]
            others = (authors != program) & (authors != NOBODY)
            if others.any():
                others &= ~self.order.orders(authors, before, program)
            mine = authors == program
            if mine.any():
                marks = self.order.marks(shape, lanes) if shape != (1,) else None
                mine &= self.order.by_another_lane(before, marks)
            self._add("write-read", argument, at, others | mine, authors)
            if not (nobody := authors == NOBODY).all():
                untouched = _numbers(at)[nobody]
        reader = storage.reader[at]
        storage.reader[at] = np.where((reader != NOBODY) & (reader != program), SEVERAL, program)
        storage.read = True
        return untouched

    def store(self, argument: Argument, at: Elements, program: int, shape, lanes, new: np.ndarray) -> None:
        storage, marks = argument.storage, self.order.marks(shape, lanes)
        clash = np.zeros(lanes.shape, bool)
        if storage.written:
            authors, before = _authors(storage.writer[at]), storage.mark[at]
            clash = (authors != program) & (authors != NOBODY)
            if clash.any():
                clash &= ~self.order.orders(authors, before, program)
            mine = (authors == program) & self.order.by_another_lane(before, marks)
            if (either := clash | mine).any():
                same = self._same_bits(storage.start + _numbers(at), new, either)
                self._add("write-write", argument, at, clash | mine & ~same, authors, same)
        if storage.read:
            reader = storage.reader[at]
            read = (reader != program) & (reader != NOBODY) & ~clash
            if read.any():
                self._add("read-write", argument, at, read & ~self.order.orders_reads(reader, program), reader)
        storage.writer[at], storage.mark[at] = program, marks
        storage.written = True
        if isinstance(at, slice):
            return
        lost = storage.mark[at] != marks
        if lost.any():  # several lanes wrote one element, and the last one stays
            bits = np.ascontiguousarray(new).view(f"u{new.itemsize}")
            kept = bits[np.searchsorted(lanes, storage.mark[at[lost]] & _LANE)]
            lost[lost] = bits[lost] != kept
            authors = np.full(lanes.shape, program)
            self._add("write-write", argument, at, lost, authors, np.zeros(lanes.shape, bool))

    def atomic(self, argument: Argument, at: Elements, program: int, shape, lanes, semantics: str) -> None:
        storage, marks, author = argument.storage, self.order.marks(shape, lanes), ATOMIC - program
        if storage.written:
            authors, before = storage.writer[at], storage.mark[at]
            others = (authors != program) & (authors >= 0)
            if others.any():
                others &= ~self.order.orders(authors, before, program)
            mine = (authors == program) & self.order.by_another_lane(before, marks)
            self._add("write-read", argument, at, others | mine, authors)
            author = np.where(authors == program, program, author)  # its own plain store still races with others
        storage.writer[at], storage.mark[at] = author, marks
        storage.written = True
        if not isinstance(at, slice):  # of several lanes, none can read it back
            storage.mark[at[storage.mark[at] != marks]] |= _WHO
        self.order.atomic(program, semantics)

    def _add(self, kind: str, argument: Argument, at, clash, other, same=None) -> None:
        if not clash.any():
            return
        launch, found = self.launch, np.flatnonzero(clash)
        launch.race_count += found.size
        line, code = self._where()
        at = _numbers(at)
        for lane in found[: MAX_RACES - len(launch.races)]:
            element = int(at[lane] - (argument.real - argument.storage.start)) // argument.itemsize
            launch.races.append(
                Race(
                    kind=kind,
                    kernel=launch.kernel,
                    argument=argument.name,
                    index=argument.index(element),
                    first=self._program_at(int(other[lane])),
                    second=self._program_at(None),
                    same_value=bool(same[lane]) if same is not None else None,
                    line=line,
                    code=code,
                )
            )


def _numbers(at: Elements) -> np.ndarray:
    return np.arange(at.start, at.stop, at.step) if isinstance(at, slice) else at


def _authors(writer: np.ndarray) -> np.ndarray:
    """The programs that wrote elements last, with atomics or without; NOBODY for the others."""
    return np.where(writer <= ATOMIC, ATOMIC - writer, writer)
