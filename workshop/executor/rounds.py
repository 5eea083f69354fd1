"""Many rounds of a loop at once, where only addresses are wanted: each round is as a program of its own.

What a round hands to the next is guessed first: it grows as it did in the first round. Then the rounds run, and each
must hand on what was guessed for the next. If all do, the guess is right, by induction.
"""

from __future__ import annotations

import torch

from .values import UNKNOWN, Affine, View, of

MOST_TOGETHER = 1 << 17  # rounds of all programs
LIKE_ONE = 1 << 12  # so many take about as long as one round does by itself, and count as one


def left(index: torch.Tensor, high: torch.Tensor, step: torch.Tensor, on, count: int) -> torch.Tensor:
    """How many rounds a loop from `index` to `high` has for each of `count` programs, if they are `on`."""
    step = step.long()
    rounds = -torch.div(index.long() - high.long(), step, rounding_mode="floor")
    rounds = rounds.clamp(min=0).expand(count)
    return rounds if on is None else torch.where(on, rounds, 0)


def ahead(rounds: torch.Tensor, first: int, last: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The rounds `first` to `last` - 1, and the programs that run them.

    Neighbours are rounds of one program, or programs in one round, whichever is more: their accesses are one Box.
    """
    there = torch.arange(first, last) < rounds[:, None]
    if last - first > len(rounds):
        programs, number = there.nonzero().unbind(1)
    else:
        number, programs = there.T.nonzero().unbind(1)
    return number + first, programs


def continued(old, new, rounds: torch.Tensor, programs: torch.Tensor):
    """What loops hand on so many rounds after `new`, if it grows as from `old` to `new`; None if nobody can tell.

    rounds: for each of `programs`, their numbers in the batch.
    """
    if new is UNKNOWN or new is old:
        return of(new, programs)
    if isinstance(old, Affine) and isinstance(new, Affine) and (old.parts, old.shape) == (new.parts, new.shape):
        return Affine(_grown(old.base, new.base, rounds, programs), new.parts, new.shape, new.dtype)
    if isinstance(old, View) and isinstance(new, View):
        offsets = [_grown(a, b, rounds, programs) for a, b in zip(old.offsets, new.offsets)]
        return of(new, programs).at(offsets)
    if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor):
        if new.ndim == 1 and new.dtype in (torch.int32, torch.int64):
            return _grown(old, new, rounds, programs)
        return of(new, programs) if _same(old, new) else None
    return None


def _grown(old: torch.Tensor, new: torch.Tensor, rounds: torch.Tensor, programs: torch.Tensor) -> torch.Tensor:
    return of(new, programs) + of(new - old, programs) * rounds.to(new.dtype)


def agrees(guess, found) -> bool:
    if guess is found:
        return True
    if isinstance(guess, Affine) and isinstance(found, Affine):
        return (guess.parts, guess.shape) == (found.parts, found.shape) and _same(guess.base, found.base)
    if isinstance(guess, View) and isinstance(found, View):
        pairs = [(guess.base, found.base), *zip(guess.offsets, found.offsets)]
        pairs += [*zip(guess.sizes, found.sizes), *zip(guess.strides, found.strides)]
        return all(_same(a, b) for a, b in pairs)
    both = isinstance(guess, torch.Tensor) and isinstance(found, torch.Tensor)
    return both and _same(guess, found)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype and a.ndim == b.ndim and bool((a == b).all())
