"""Buffers whose every byte is accounted for.

A tensor is placed inside a larger buffer: a guard zone before it, one behind it, and, for row-strided views,
gaps between the rows. Guards and gaps hold a poison pattern. After the launches they must hold it still.
"""

from __future__ import annotations

import torch

GUARD = 512  # elements before and behind; a multiple of 16 keeps the alignment that Triton specialises on

# By the size of an element. A NaN that no computation produces: what still holds it was never written.
UNWRITTEN = {1: 0xA5 - 256, 2: 0x7FA5, 4: 0x7FA5A5A5, 8: 0x7FF5A5A5A5A5A5A5}
# A large number instead, for a second look: a maximum may pass over a NaN.
LARGE = {1: 0x49, 2: 0x7149, 4: 0x7149F2CA, 8: 0x4629B8C91F2D3A5B}
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory seen as integers."""
    return tensor.view(_INTEGERS[tensor.element_size()])


def is_poison(tensor: torch.Tensor, pattern: dict[int, int] = UNWRITTEN) -> torch.Tensor:
    """Where a contiguous tensor still holds the pattern that says nobody wrote here."""
    if tensor.dtype == torch.bool:
        tensor = tensor.view(torch.uint8)
    return bits(tensor) == pattern[tensor.element_size()]


def poison(tensor: torch.Tensor, pattern: dict[int, int] = UNWRITTEN) -> torch.Tensor:
    """Fills a fresh tensor with the pattern that says nobody wrote here."""
    if tensor.numel():
        whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())
        bits(whole.view(torch.uint8) if whole.dtype == torch.bool else whole).fill_(
            pattern[tensor.element_size()]
        )
    return tensor


class Guarded:
    """`values` (contiguous) laid out with `stride`, between guards of so many elements."""

    def __init__(self, values: torch.Tensor, stride: tuple[int, ...], device, guard: int, pattern: dict[int, int]):
        span = 1 + sum((n - 1) * s for n, s in zip(values.shape, stride)) if values.numel() else 0
        self.buffer = poison(torch.empty(span + 2 * guard, dtype=values.dtype, device=device), pattern)
        self.tensor = torch.as_strided(self.buffer, tuple(values.shape), tuple(stride), guard)
        self.tensor.copy_(values)
        self.before = bits(self.buffer).clone()
        inside = torch.zeros(span + 2 * guard, dtype=torch.bool, device=device)
        torch.as_strided(inside, tuple(values.shape), tuple(stride), guard).fill_(True)
        self.inside = inside

    def damage(self) -> str | None:
        """'input-modified' where the tensor changed, 'out-of-bounds-store' where a guard or gap did."""
        changed = bits(self.buffer) != self.before
        if bool((changed & ~self.inside).any()):
            return "out-of-bounds-store"
        return "input-modified" if bool(changed.any()) else None


class GuardedAllocations:
    """Replays `torch.empty` and its relatives between guards as well, where the layout is contiguous."""

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
