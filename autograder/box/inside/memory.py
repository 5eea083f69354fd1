"""Tensors of a job: decoys without the real values, and buffers with guards.

A guarded tensor is placed inside a larger buffer, with a guard zone before it and one after it. A row-strided view
also has gaps between the rows. Guards and gaps hold a poison pattern. After the launches they must still hold it.

Runs in a child of the zygote, beside the learner's code.
"""

from __future__ import annotations

import itertools

import torch

from ...tensors import DTYPES, bits, each_place, is_poison, poison, span
from ..wire.requests import Decoy, Scalar

FEW = 1 << 12
_numbers, _starts = torch.randn(2 * FEW), itertools.count(0, 257)  # drawn once; a decoy begins at another of them


def decoys(arguments: tuple[Decoy | Scalar, ...], device) -> tuple[list, list[torch.Tensor]]:
    """The arguments of a call, and the tensors among them: random, with the right shapes, strides and dtypes.

    The learner's Python gets nothing else.
    """
    made, tensors = [], []
    for argument in arguments:
        if isinstance(argument, Scalar):
            made.append(argument.scalar)
            continue
        if argument.same is not None:
            made.append(made[argument.same])
            tensors.append(made[-1])
            continue
        size = span(argument.shape, argument.stride)
        base = torch.empty(size, dtype=DTYPES[argument.dtype], device=device)  # a large one stays untouched
        few = min(size, FEW)  # the rest holds anything: to fill millions takes long, and nothing looks at them
        start = next(_starts) % FEW
        base[:few] = _numbers[start : start + few]
        tensor = torch.as_strided(base, argument.shape, argument.stride)
        made.append(tensor)
        tensors.append(tensor)
    return made, tensors


class Guarded:
    """`values` (contiguous) laid out with `stride`, between guards of `guard` elements."""

    def __init__(self, values: torch.Tensor, stride: tuple[int, ...], device, guard: int, pattern: dict[int, int]):
        size = span(values.shape, stride) + 2 * guard
        self.buffer = poison(torch.empty(size, dtype=values.dtype, device=device), pattern)
        self.tensor = torch.as_strided(self.buffer, tuple(values.shape), tuple(stride), guard)
        each_place(self.tensor).copy_(each_place(values, stride))
        self.before = bits(self.buffer).clone()
        inside = torch.zeros(size, dtype=torch.bool, device=device)
        each_place(torch.as_strided(inside, tuple(values.shape), tuple(stride), guard)).fill_(True)
        self.inside = inside

    def damage(self) -> str | None:
        """'input-modified' if the tensor changed, 'out-of-bounds-store' if a guard or gap changed, else None."""
        changed = bits(self.buffer) != self.before
        if bool((changed & ~self.inside).any()):
            return "out-of-bounds-store"
        return "input-modified" if bool(changed.any()) else None


class GuardedAllocations:
    """Puts the results of `torch.empty` and similar functions between guards too, if they are contiguous."""

    def __init__(self, guard: int, pattern: dict[int, int]):
        self.guard, self.pattern = guard, pattern
        self.buffers: list[tuple[torch.Tensor, int]] = []

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        poison(tensor, self.pattern)
        if not tensor.is_contiguous() or not tensor.numel() or tensor.dtype == torch.bool:
            return tensor
        n = tensor.numel()
        buffer = poison(torch.empty(n + 2 * self.guard, dtype=tensor.dtype, device=tensor.device), self.pattern)
        self.buffers.append((buffer, n))
        return torch.as_strided(buffer, tuple(tensor.shape), tensor.stride(), self.guard)

    def damaged(self) -> bool:
        return not all(
            bool(is_poison(outside, self.pattern).all())
            for buffer, n in self.buffers
            for outside in (buffer[: self.guard], buffer[self.guard + n :])
        )
