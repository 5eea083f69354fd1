"""How a value of all programs at once is kept: as a torch tensor, or as one of the classes here.

A tensor has a leading axis for the programs, or length 1 there if it is the same for all; behind it are the axes of
the block. An axis of length 1 stands for equal elements along it. Indices, addresses and masks are nearly always
Symbolic: a few numbers for each program, which are not written out. Such a Number is a Python int where all programs
have the same: its arithmetic takes a hundredth of the time of a tensor's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from .program import Operation, Type, Value

Number = int | np.ndarray  # of each program: of all the same, or int64 of (programs,)


class TooLarge(Exception):
    """The addresses of a large launch are not a few numbers for each program, or it takes more than Watch.most."""


def number(x: torch.Tensor) -> Number:
    """One number for each program, or one for all."""
    return int(x) if x.numel() == 1 else x.reshape(-1).long().numpy()


def tensor(x: Number) -> torch.Tensor:
    """int64 of (programs,), or of (1,) for an int."""
    return torch.tensor([x]) if isinstance(x, int) else torch.from_numpy(x)


def wrapped(x: Number, bits: int) -> Number:
    """The number that so many bits hold, with a sign."""
    half = 1 << bits - 1
    if -half <= x < half if isinstance(x, int) else bits == 64:
        return x
    return (x + half & 2 * half - 1) - half


def clamped(x: Number, high: int) -> Number:
    """From 0 to `high`."""
    return min(max(x, 0), high) if isinstance(x, int) else np.minimum(np.maximum(x, 0), high)


def column(numbers: torch.Tensor, axes: int) -> torch.Tensor:
    """One number for each program, as a value with so many axes of length 1 behind the programs' axis."""
    return numbers.reshape(numbers.shape[:1] + (1,) * axes)


def along(axis: int, count: int, axes: int) -> torch.Tensor:
    """0, 1, 2, … along one of so many axes, int64."""
    return torch.arange(count).reshape((count,) + (1,) * (axes - axis - 1))


def lattice(base: Number, steps, counts) -> torch.Tensor:
    """base + i·steps[0] + j·steps[1] + …: (programs, *counts), with length 1 along an axis where nothing varies."""
    axes = len(counts)
    found = column(tensor(base), axes)
    for axis, (step, count) in enumerate(zip(steps, counts)):
        if step and count > 1:
            found = found + along(axis, count, axes) * step
    return found


def quotient(x: torch.Tensor, by: int) -> torch.Tensor:
    """x // by, rounded down. NumPy takes a sixth of the time of torch.div."""
    return torch.as_tensor(np.floor_divide(x.numpy(), by))


def places(mask: torch.Tensor) -> torch.Tensor:
    """Where a mask is true, by the numbers of its elements. NumPy takes a tenth of the time of torch.nonzero."""
    return torch.from_numpy(np.flatnonzero(mask.numpy()))


def row_major(shape) -> tuple[int, ...]:
    """The steps that number the elements of a block."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


class Kept:
    """A value of several tensors, each with a leading axis for the programs; what else its fields hold is the same.

    NUMBERS: the fields that hold Numbers, by themselves or in lists.
    """

    NUMBERS: tuple[str, ...] = ()


class Symbolic(Kept):
    """A block that is not written out. parts: what is known of each axis; `equal` where nothing varies along it.

    written: the value, written out along the axes on which it varies.
    """

    equal: int | None = None
    written: torch.Tensor

    def expand_dims(self, axis: int) -> Symbolic:
        parts = (*self.parts[:axis], self.equal, *self.parts[axis:])
        return self.like(parts, (*self.shape[:axis], 1, *self.shape[axis:]))

    def permuted(self, order) -> Symbolic:
        return self.like(tuple(self.parts[i] for i in order), tuple(self.shape[i] for i in order))

    def broadcast(self, shape) -> Symbolic:
        """In a larger shape, where nothing varies along the axes that grow."""
        parts = zip(self.parts, self.shape, shape)
        return self.like(tuple(part if n == whole else self.equal for part, n, whole in parts), tuple(shape))


@dataclass(eq=False)
class Affine(Symbolic):
    """base[p] + i·parts[0] + j·parts[1] + …: what integers, indices and addresses nearly always are.

    parts: the steps. shape: of the block; () for a number. dtype: of the value.
    """

    base: Number
    parts: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: torch.dtype
    equal = 0
    NUMBERS = ("base",)

    def like(self, parts, shape) -> Affine:
        return Affine(self.base, parts, shape, self.dtype)

    @property
    def is_uniform(self) -> bool:
        """Whether all elements of a program's block are equal."""
        return not any(self.parts)

    @functools.cached_property
    def written(self) -> torch.Tensor:
        return lattice(self.base, self.parts, self.shape).to(self.dtype)

    def fits(self) -> Affine | torch.Tensor:
        """Itself, or, where its bits do not hold it, the number that wraps around."""
        base, bits = self.base, 8 * self.dtype.itemsize
        if bits == 64 or self.is_uniform:
            self.base = wrapped(base, bits)
            self.parts = tuple([wrapped(step, 64) for step in self.parts])
            return self
        low, high = (base, base) if isinstance(base, int) else (int(base.min()), int(base.max()))
        for size, step in zip(self.shape, self.parts):
            low, high = low + min((size - 1) * step, 0), high + max((size - 1) * step, 0)
        return self if -1 << bits - 1 <= low and high < 1 << bits - 1 else self.written

    def plus(self, other) -> Affine | torch.Tensor | None:
        """self + other, if that is one again."""
        if isinstance(other, torch.Tensor) and other.shape[1:].numel() == 1:
            return Affine(self.base + number(other), self.parts, self.shape, self.dtype).fits()
        if not isinstance(other, Affine):
            return None
        parts = tuple([a + b for a, b in zip(self.parts, other.parts)])
        return Affine(self.base + other.base, parts, self.shape, self.dtype).fits()

    def times(self, factor: Number) -> Affine | torch.Tensor:
        """factor: an int, or a number of each program where the value is uniform."""
        parts = tuple([step and step * factor for step in self.parts])
        return Affine(self.base * factor, parts, self.shape, self.dtype).fits()

    def below(self, bound: Number) -> Rect | None:
        """Where the value is less than a number of each program; None if that is no rectangle."""
        varies = [axis for axis, (step, size) in enumerate(zip(self.parts, self.shape)) if step and size > 1]
        if len(varies) != 1 or self.parts[varies[0]] < 0:
            return None
        step, size = self.parts[varies[0]], self.shape[varies[0]]
        count = clamped((bound - self.base + step - 1) // step, size)
        return Rect(tuple(count if axis == varies[0] else None for axis in range(len(self.shape))), self.shape)


@dataclass(eq=False)
class Rect(Symbolic):
    """A mask that is true in the first parts[axis] elements along each axis. None: in all."""

    parts: tuple[Number | None, ...]
    shape: tuple[int, ...]
    NUMBERS = ("parts",)

    def like(self, parts, shape) -> Rect:
        return Rect(parts, shape)

    @functools.cached_property
    def written(self) -> torch.Tensor:
        axes = len(self.shape)
        value = torch.ones((1,) * (axes + 1), dtype=torch.bool)
        for axis, (count, size) in enumerate(zip(self.parts, self.shape)):
            if count is not None:
                value = value & (along(axis, size, axes) < column(tensor(count), axes))
        return value

    def both(self, other: Rect) -> Rect:
        parts = tuple(a if b is None else b if a is None else _lesser(a, b) for a, b in zip(self.parts, other.parts))
        return Rect(parts, self.shape)

    def broadcast(self, shape):
        """Written out where a shortened axis of length 1 becomes longer."""
        shortened = any(c is not None and n != whole for c, n, whole in zip(self.parts, self.shape, shape))
        return self.written if shortened else super().broadcast(shape)


def _lesser(a: Number, b: Number) -> Number:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)


@dataclass(eq=False)
class Doubtful(Kept):
    """A value with lanes that nothing defined: those of a load that its mask switched off, and what follows from them.

    undefined: a bool tensor that broadcasts to the value.
    """

    value: torch.Tensor
    undefined: torch.Tensor


UNKNOWN = object()  # where only addresses are wanted: what stands in memory, and what no address follows from


@dataclass(eq=False)
class View(Kept):
    """What tl.make_block_ptr and tl.make_tensor_descriptor give: a block of a tensor.

    sizes, strides, offsets: a Number for each axis. block: its shape. padding: what lanes outside of the tensor hold.
    """

    base: Number
    sizes: list[Number]
    strides: list[Number]
    offsets: list[Number]
    block: tuple[int, ...]
    padding: float | None = 0.0
    NUMBERS = ("base", "sizes", "strides", "offsets")

    def lanes(self, itemsize: int, checked, rows: torch.Tensor | None = None, granule: int = 1):
        """The address of each lane of the block, and which lie inside along the axes `checked`: None if these are none.

        rows: (programs, rows), the places along the first axis. granule: the last axis ends at a multiple of it.
        """
        axes, steps, offsets, ends = len(self.block), [n * itemsize for n in self.strides], self.offsets, [*self.sizes]
        ends[-1] = (ends[-1] + granule - 1) // granule * granule
        if rows is None and all(isinstance(n, int) for n in steps) and all(np.all(offsets[i] >= 0) for i in checked):
            base = self.base + sum(offset * step for offset, step in zip(offsets, steps))
            about = enumerate(zip(ends, offsets, self.block))
            parts = tuple(clamped(end - at, n) if axis in checked else None for axis, (end, at, n) in about)
            return Affine(base, tuple(steps), self.block, torch.int64), Rect(parts, self.block) if checked else None
        mask, address = None, column(tensor(self.base), axes)
        for axis, (end, step, offset) in enumerate(zip(ends, steps, offsets)):
            place = column(tensor(offset), axes) + along(axis, self.block[axis], axes)
            if rows is not None and axis == 0:
                place = rows.long().unsqueeze(-1)
            address = address + place * column(tensor(step), axes)
            if axis in checked:
                inside = (place >= 0) & (place < column(tensor(end), axes))
                mask = inside if mask is None else mask & inside
        return address, mask


# --- what a value is ---------------------------------------------------------------------------------------


def plain(value):
    """A value as a tensor, without what is known of its undefined lanes; what is no value as it is. Raises TooLarge."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, Symbolic):
        return value.written
    if isinstance(value, Doubtful):
        return value.value
    if value is UNKNOWN:
        raise TooLarge
    return value


def doubt(value) -> torch.Tensor:
    """Which lanes of a value are undefined; it broadcasts to the value."""
    if isinstance(value, Doubtful):
        return value.undefined
    return torch.zeros((1,) * plain(value).ndim, dtype=torch.bool)


class Unlike(Exception):
    """Values that are not kept in the same way."""


def mapped(change: Callable, *given, numbers: bool = False):
    """A value with change(tensor, …) in the place of each tensor, or Number, of the ones given. Raises Unlike.

    Of equal tensors, `change` gives an equal one.
    """
    kind, first = type(given[0]), given[0]
    if numbers and kind in (int, np.ndarray) and all(isinstance(each, Number) for each in given):
        if kind is int and all(each is first or isinstance(each, int) and each == first for each in given):
            return first
        return number(change(*map(tensor, given)))
    if kind is torch.Tensor and all(type(each) is kind for each in given):
        return change(*given)
    if {Affine, torch.Tensor} == {*map(type, given)}:  # an operation that makes a tensor made one of them
        return mapped(change, *map(plain, given))
    if any(type(each) is not kind for each in given):
        raise Unlike
    if issubclass(kind, Kept):
        return kind(*(
            mapped(change, *(getattr(each, field) for each in given), numbers=field in kind.NUMBERS)
            for field in kind.__dataclass_fields__
        ))  # fmt: skip
    if kind in (tuple, list):
        return kind([mapped(change, *parts, numbers=numbers) for parts in zip(*given, strict=True)])
    if any(each is not first and each != first for each in given):  # NaN is the same NaN
        raise Unlike
    return first


def of(value, programs: torch.Tensor):
    """A value of these programs of the batch, one behind the other."""
    return mapped(lambda tensor: tensor if len(tensor) == 1 else tensor[programs], value)


def merged(on: torch.Tensor, new, old):
    """For each program the new value where `on`, else the old one."""
    if new is UNKNOWN or old is UNKNOWN:
        return UNKNOWN
    try:
        return mapped(lambda a, b: torch.where(column(on, max(a.ndim, b.ndim) - 1), a, b), new, old)
    except Unlike:
        found = merged(on, plain(new), plain(old))
        doubtful = isinstance(new, Doubtful) or isinstance(old, Doubtful)
        return Doubtful(found, merged(on, doubt(new), doubt(old))) if doubtful else found


# --- operations whose result is Symbolic. Each gives None where it is not. ---------------------------------


def uniform(type: Type, x: Affine | torch.Tensor) -> Affine | torch.Tensor:
    """An integer or a pointer, the same in each lane of a program, as it is kept."""
    scalar = type.scalar
    if scalar.kind == "pointer" or scalar.name in ("i32", "i64"):
        base = x.base if isinstance(x, Affine) else number(x)
        return Affine(base, (0,) * len(type.shape), type.shape, x.dtype)
    return x


def _splat(operation: Operation, type, x):
    found = uniform(type, x) if isinstance(x, (Affine, torch.Tensor)) else None
    return found if isinstance(found, Affine) else None


def _add(operation: Operation, x, y):
    found = x.plus(y) if isinstance(x, Affine) else None
    return y.plus(x) if found is None and isinstance(y, Affine) else found


def _sub(operation: Operation, x, y):
    negative = y.times(-1) if isinstance(x, Affine) and isinstance(y, Affine) else None
    return x.plus(negative) if isinstance(negative, Affine) else None


def _mul(operation: Operation, x, y):
    for one, other in ((x, y), (y, x)):
        both = isinstance(one, Affine) and isinstance(other, Affine)
        if both and other.is_uniform and (isinstance(other.base, int) or one.is_uniform):
            return one.times(other.base)
    return None


def _addptr(operation: Operation, pointer, offset):
    size = operation.args[0].type.scalar.element.dtype.itemsize
    if isinstance(offset, Affine):
        return _add(operation, pointer, Affine(offset.base, offset.parts, offset.shape, torch.int64).times(size))
    both = isinstance(pointer, Affine) and isinstance(offset, torch.Tensor)
    return pointer.plus(offset.long() * size) if both else None


def _compare(operation: Operation, x, y):
    x, y = (y, x) if "SG" in operation.name else (x, y)
    if not (isinstance(x, Affine) and isinstance(y, Affine) and y.is_uniform):
        return None
    return x.below(y.base + operation.name.endswith("E"))


def _int_cast(operation: Operation, x, type, signed: bool):
    wider = isinstance(x, Affine) and signed and type.scalar.bits == 64
    return Affine(x.base, x.parts, x.shape, torch.int64) if wider else None


def _bitcast(operation: Operation, x, type):
    same = type.scalar.kind == "pointer" or isinstance(x, Affine) and type.dtype == x.dtype
    return x if same else None


SYMBOLIC: dict[str, Callable] = {
    "splat": _splat, "add": _add, "sub": _sub, "mul": _mul, "addptr": _addptr, "int_cast": _int_cast,
    "bitcast": _bitcast,
    "unsplat": lambda operation, x: Affine(x.base, (), (), x.dtype) if isinstance(x, Affine) else None,
    "make_range": lambda operation, type, start, end: Affine(start, (1,), (end - start,), torch.int32),
    "and": lambda operation, x, y: x.both(y) if isinstance(x, Rect) and isinstance(y, Rect) else None,
    "expand_dims": lambda operation, x, axis: x.expand_dims(axis) if isinstance(x, Symbolic) else None,
    "trans": lambda operation, x, order: x.permuted(order) if isinstance(x, Symbolic) else None,
    "broadcast": lambda operation, x, shape: x.broadcast(shape) if isinstance(x, Symbolic) else None,
    **dict.fromkeys(("icmpSLT", "icmpSLE", "icmpSGT", "icmpSGE"), _compare),
}  # fmt: skip

# --- operations that move elements: what is undefined moves with them. x: tensors. --------------------------


def whole(value: Value, kept) -> torch.Tensor:
    """The value with all of its block's axes written out."""
    x = plain(kept)
    return x.expand(x.shape[:1] + value.type.shape)


def _wholes(operation: Operation, *given: torch.Tensor) -> list[torch.Tensor]:
    count = max(map(len, given))
    return [x.expand(count, *value.type.shape) for x, value in zip(given, operation.args)]


MOVES: dict[str, Callable] = {
    "splat": lambda operation, type, x: column(x, len(type.shape)),
    "unsplat": lambda operation, x: x.reshape(-1),
    "expand_dims": lambda operation, x, axis: x.unsqueeze(axis + 1),
    "broadcast": lambda operation, x, shape: x,
    "trans": lambda operation, x, order: x.permute(0, *(i + 1 for i in order)),
    "reshape": lambda operation, x, shape, reorder: whole(operation.args[0], x).reshape((-1, *shape)),
    "join": lambda operation, x, y: torch.stack(_wholes(operation, x, y), dim=-1),
    "split": lambda operation, x: whole(operation.args[0], x).unbind(-1),
    "cat": lambda operation, x, y: torch.cat(_wholes(operation, x, y), dim=1),
}


def without_doubt(found, undefined):
    """A value or several, and which lanes of them are undefined: Doubtful where any is."""
    if isinstance(found, tuple):
        return tuple(map(without_doubt, found, undefined))
    return Doubtful(found, undefined) if undefined.any() else found


def follows(name: str, given: list, found: torch.Tensor) -> torch.Tensor:
    """Which lanes of an elementwise operation or a dot are undefined, because operands are and it can matter."""
    if name == "dot":  # 0 times an undefined number may be NaN: it spoils its row, or its column
        a, b, c = map(doubt, given[:3])
        return a.any(-1, keepdim=True) | b.any(-2, keepdim=True) | c
    doubts = [doubt(each) for each in given if isinstance(each, (Doubtful, torch.Tensor, Symbolic))]
    if name == "select":
        return doubts[0] | torch.where(plain(given[0]), doubts[1], doubts[2])
    undefined = functools.reduce(torch.bitwise_or, doubts)
    if name in ("and", "or") and found.dtype == torch.bool:  # `False & undefined` is False
        decides = [(plain(each) == (name == "or")) & ~doubt(each) for each in given]
        undefined = undefined & ~(decides[0] | decides[1])
    return undefined
