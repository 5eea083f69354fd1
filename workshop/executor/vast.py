"""Tensors too large to hold: memory is made where a program touches it.

A launch over 10⁹ elements can be run for some of its programs. `Vast` stands for a tensor argument of that launch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from .records import NOBODY, Storage

PAGE = 12  # bits of a page's elements


class Vast:
    """A tensor whose elements are given by a function, or not defined.

    content(at): the elements at these distances from the start of its memory, int64 of any shape -> values; None:
    nothing is defined. memory: of another Vast that this one is a view of, `offset` elements behind its start.
    """

    def __init__(self, shape, stride, dtype: torch.dtype, content: Callable | None = None, memory=None, offset=0):
        self.shape, self._stride, self.dtype = torch.Size(shape), tuple(stride), dtype
        self.offset = offset
        extent = offset + 1 + sum((n - 1) * s for n, s in zip(self.shape, self._stride))
        self.memory = Pages(extent, dtype, content) if memory is None else memory

    def stride(self):
        return self._stride

    def numel(self) -> int:
        return self.shape.numel()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return self.offset * self.element_size()  # aligned as every fresh tensor is


class Pages(Storage):
    """The memory of Vasts: pages of 2**PAGE elements, made when they are touched first.

    Arrays and `typed` hold the pages one behind the other, in the order in which they were made.
    """

    def __init__(self, extent: int, dtype: torch.dtype, content: Callable | None):
        self.unit, self.content = dtype.itemsize, content
        self.start, self.written, self.read, self.passes = 0, False, False, {}
        self.table = torch.full(((extent >> PAGE) + 1,), -1, dtype=torch.int32)
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
        slots = self.table[page]
        if (slots < 0).any():
            self._make(page[slots < 0].unique())
            slots = self.table[page]
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
        place = (self.writer != NOBODY).nonzero().reshape(-1)
        at = self.origin(place)
        order = torch.from_numpy(np.argsort(at.numpy()))
        return at[order], self.pool[place[order]], self.writer[place[order]]
