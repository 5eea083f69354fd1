"""Values that are not written out: addresses and masks of a block as a few numbers for each program.

A value is a torch tensor with a leading axis for the programs, or one of these. An axis of length 1 stands for equal
elements along it.
"""

from __future__ import annotations

import torch

INT32 = -(1 << 31), (1 << 31) - 1


def column(numbers: torch.Tensor, axes: int) -> torch.Tensor:
    """One number for each program, as a value with so many axes of length 1 behind the programs' axis."""
    return numbers.reshape(numbers.shape[:1] + (1,) * axes)


class Affine:
    """base[p] + i·steps[0] + j·steps[1] + …: what indices and addresses nearly always are.

    base: int64, (programs,) or (1,). steps: Python integers. shape: of the block. dtype: of the value.
    """

    __slots__ = ("base", "steps", "shape", "dtype")

    def __init__(self, base: torch.Tensor, steps: tuple[int, ...], shape: tuple[int, ...], dtype: torch.dtype):
        self.base, self.steps, self.shape, self.dtype = base, steps, shape, dtype

    def tensor(self) -> torch.Tensor:
        """The value, written out along the axes on which it varies."""
        axes = len(self.shape)
        value = column(self.base, axes)
        for axis, (step, size) in enumerate(zip(self.steps, self.shape)):
            if step and size > 1:
                value = value + (torch.arange(size) * step).reshape((size,) + (1,) * (axes - axis - 1))
        return value.to(self.dtype)

    def ends(self) -> tuple[int, int]:
        """The smallest and the largest element."""
        low, high = torch.aminmax(self.base)
        reach = [(size - 1) * step for size, step in zip(self.shape, self.steps)]
        return int(low) + sum(r for r in reach if r < 0), int(high) + sum(r for r in reach if r > 0)

    def fits(self) -> Affine | torch.Tensor:
        """Itself, or, where 32 bits do not hold it, the number that wraps around."""
        if self.dtype == torch.int64 or not self.base.numel():
            return self
        low, high = self.ends()
        bounds = torch.iinfo(self.dtype)
        return self if bounds.min <= low and high <= bounds.max else self.tensor()

    def plus(self, other) -> Affine | torch.Tensor | None:
        """self + other, if that is one again."""
        if isinstance(other, Affine):
            shape = tuple(map(max, self.shape, other.shape))
            steps = zip(self._steps_in(shape), other._steps_in(shape))
            return Affine(self.base + other.base, tuple(a + b for a, b in steps), shape, self.dtype).fits()
        if other.shape[1:].numel() == 1:
            return Affine(self.base + other.reshape(-1).long(), self.steps, self.shape, self.dtype).fits()
        return None

    def times(self, factor: int, dtype: torch.dtype | None = None) -> Affine | torch.Tensor:
        steps = tuple(step * factor for step in self.steps)
        return Affine(self.base * factor, steps, self.shape, dtype or self.dtype).fits()

    def _steps_in(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(step if size == whole else 0 for step, size, whole in zip(self.steps, self.shape, shape))

    def broadcast(self, shape: tuple[int, ...]) -> Affine:
        return Affine(self.base, self._steps_in(shape), tuple(shape), self.dtype)

    def expand_dims(self, axis: int) -> Affine:
        steps, shape = list(self.steps), list(self.shape)
        steps.insert(axis, 0)
        shape.insert(axis, 1)
        return Affine(self.base, tuple(steps), tuple(shape), self.dtype)

    def permute(self, order) -> Affine:
        return Affine(self.base, tuple(self.steps[i] for i in order), tuple(self.shape[i] for i in order), self.dtype)

    def below(self, bound: torch.Tensor) -> Rect | None:
        """Where the value is less than a number of each program; None if that is no rectangle."""
        along = [axis for axis, (step, size) in enumerate(zip(self.steps, self.shape)) if step and size > 1]
        if len(along) != 1 or self.steps[along[0]] < 0:
            return None
        step, size = self.steps[along[0]], self.shape[along[0]]
        count = torch.div(bound.reshape(-1).long() - self.base + step - 1, step, rounding_mode="floor")
        counts = [None] * len(self.shape)
        counts[along[0]] = count.clamp_(0, size)
        return Rect(tuple(counts), self.shape)


class Rect:
    """A mask that is true in the first counts[axis][p] elements along each axis.

    counts: int64 of (programs,) or (1,) for each axis; None: all elements.
    """

    __slots__ = ("counts", "shape")

    def __init__(self, counts: tuple[torch.Tensor | None, ...], shape: tuple[int, ...]):
        self.counts, self.shape = counts, shape

    def tensor(self) -> torch.Tensor:
        axes, value = len(self.shape), None
        for axis, (count, size) in enumerate(zip(self.counts, self.shape)):
            if count is not None:
                place = torch.arange(size, dtype=torch.int32).reshape((size,) + (1,) * (axes - axis - 1))
                part = place < column(count, axes)
                value = part if value is None else value & part
        return torch.ones((1,) * (axes + 1), dtype=torch.bool) if value is None else value

    def both(self, other: Rect) -> Rect:
        counts = (
            a if b is None else b if a is None else torch.minimum(a, b) for a, b in zip(self.counts, other.counts)
        )
        return Rect(tuple(counts), tuple(map(max, self.shape, other.shape)))

    def broadcast(self, shape: tuple[int, ...]) -> Rect | None:
        """In a larger shape; None where a shortened axis of length 1 would become longer."""
        if any(c is not None and n != whole for c, n, whole in zip(self.counts, self.shape, shape)):
            return None
        return Rect(self.counts, tuple(shape))

    def expand_dims(self, axis: int) -> Rect:
        counts, shape = list(self.counts), list(self.shape)
        counts.insert(axis, None)
        shape.insert(axis, 1)
        return Rect(tuple(counts), tuple(shape))

    def permute(self, order) -> Rect:
        return Rect(tuple(self.counts[i] for i in order), tuple(self.shape[i] for i in order))


class Doubtful:
    """A value with lanes that nothing defined: those of a load that its mask switched off, and what follows from them.

    value: a tensor. undefined: a bool tensor that broadcasts to it.
    """

    __slots__ = ("value", "undefined")

    def __init__(self, value: torch.Tensor, undefined: torch.Tensor):
        self.value, self.undefined = value, undefined


class BlockPointer:
    """What tl.make_block_ptr gives: base (programs,), and for each axis tensors of one number for each program."""

    __slots__ = ("base", "shape", "strides", "offsets", "block")

    def __init__(self, base, shape, strides, offsets, block):
        self.base, self.shape, self.strides, self.offsets, self.block = base, shape, strides, offsets, block

    def advanced(self, by) -> BlockPointer:
        offsets = [a + b for a, b in zip(self.offsets, by, strict=True)]
        return BlockPointer(self.base, self.shape, self.strides, offsets, self.block)

    def places(self, element_size: int) -> list[torch.Tensor]:
        """The index of each lane along each axis, (programs, 1, …, size, …, 1), and behind them the addresses."""
        axes, found = len(self.block), []
        address = column(self.base, axes)
        for axis, size in enumerate(self.block):
            line = torch.arange(size).reshape((size,) + (1,) * (axes - axis - 1))
            found.append(column(self.offsets[axis].long(), axes) + line)
            address = address + found[-1] * column(self.strides[axis].long(), axes) * element_size
        return [*found, address]


def plain(value):
    """A value as a tensor, without what is known of its undefined lanes."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, Doubtful):
        return value.value
    return value.tensor() if isinstance(value, (Affine, Rect)) else value
