"""Many rounds of a loop at once, where only addresses are wanted: each round is as a program of its own.

What a round hands to the next is guessed first: it grows as it did in the first round. Then the rounds run, and each
must hand on what was guessed for the next. If all do, the guess is right, by induction.
"""

from __future__ import annotations

import torch

from .values import UNKNOWN, Affine, Unlike, mapped, of, plain

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

    def grown(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        if new.ndim == 1 and new.dtype in (torch.int32, torch.int64) and (by := new - old).any():
            return of(new, programs) + of(by, programs) * rounds.to(new.dtype)
        return of(_alike(old, new), programs)

    try:
        return mapped(grown, *_of_a_kind(old, new))
    except Unlike:
        return None


def agrees(guess, found) -> bool:
    try:
        return guess is found or mapped(_alike, *_of_a_kind(guess, found)) is not None
    except Unlike:
        return False


def _of_a_kind(one, other):
    """A number that an operation gave as a tensor is as good as another one."""
    if isinstance(one, Affine) == isinstance(other, Affine):
        return one, other
    return plain(one), plain(other)


def _alike(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.dtype != b.dtype or a.ndim != b.ndim or not bool((a == b).all()):
        raise Unlike
    return b
