"""Loops: a `while` loop that never ends, and many rounds at once.

A loop never ends if what its condition follows from is again as it was before an earlier round.

Where only addresses are wanted, each round is as a program of its own. What a round hands to the next is guessed first:
it grows as it did in the first round. Then the rounds run, and each must hand on what was guessed for the next. If all
do, the guess is right, by induction.
"""

from __future__ import annotations

import ast

import torch

from .arithmetic import equal
from .memory import Memory
from .values import UNKNOWN, Unlike, View, mapped, of, plain, tensor

MOST_TOGETHER = 1 << 17  # rounds of all programs
LIKE_ONE = 1 << 12  # so many take about as long as one round does by itself, and count as one

# --- loops that never end ----------------------------------------------------------------------------------


class Rounds:
    """The rounds of a loop. The state before a round is compared with an earlier one, as in Brent's search for cycles.

    States are kept before the rounds 0, 1, 2, 4, 8, …, and compared there and before each sixteenth round.
    """

    def __init__(self, deciding: tuple[list[int], bool], memory: Memory):
        """deciding: see Facts.deciding."""
        self.numbers, self.reads = deciding
        self.memory, self.count, self.since = memory, 0, 0
        self.state: list[torch.Tensor] | None = None
        self.contents: list[torch.Tensor] = []

    def repeated(self, carried: list, go: torch.Tensor) -> torch.Tensor | None:
        """The programs for which a round begins as an earlier one did; None if there is none.

        carried: the values before this round. go: the programs that take part in it.
        """
        count, self.count = self.count, self.count + 1
        kept = count & (count - 1) == 0
        if not kept and (self.reads or count % 16):
            return None
        given = [carried[number] for number in self.numbers]
        if any(each is UNKNOWN for each in given):
            return None
        state = [part for each in given for part in _parts(each)]
        found = self._found(state, go) if self.state is not None else None
        if found is None and kept:
            self.state, self.since = [each.clone() for each in state], count
            self.contents = self.memory.contents() if self.reads else []
        return found

    def _found(self, state: list[torch.Tensor], go: torch.Tensor) -> torch.Tensor | None:
        same = go
        for one, other in zip(state, self.state):
            same = same & equal(one, other).reshape(max(len(one), len(other)), -1).all(dim=1)
        alike = same.any()
        if alike and self.reads:  # what one program changes, another may read
            alike = not (go & ~same).any() and all(map(torch.equal, self.memory.contents(), self.contents))
        return same if alike else None

    def moved(self, old: list, new: list) -> bool:
        """Whether a round has changed a value that the loop goes on by."""
        try:
            for number in self.numbers:
                compare(old[number], new[number])
        except Unlike:
            return True
        return False

    def why(self, code: str) -> str:
        """Why the loop never ends. code: its line."""
        asked = " or ".join(_names(code)) or "what its condition asks for"
        asked += " or the memory that its condition reads" * self.reads
        back = self.count - self.since > 2
        rounds = "each of its rounds brings back earlier values of" if back else "no round changes"
        return f"This loop never ends: {rounds} {asked}"


def _parts(value) -> list[torch.Tensor]:
    return [*map(tensor, (value.base, *value.offsets))] if isinstance(value, View) else [plain(value)]


def _names(code: str) -> list[str]:
    """The variables of the condition of a `while` line, where it is written on this line alone."""
    for text in (f"{code}\n    pass", code):
        try:
            condition = ast.parse(text).body[0].test
        except (SyntaxError, AttributeError, IndexError):
            continue
        about = [each for each in ast.walk(condition) if isinstance(each, (ast.Attribute, ast.Call))]
        owners = {id(each.value if isinstance(each, ast.Attribute) else each.func) for each in about}
        found = [each.id for each in ast.walk(condition) if isinstance(each, ast.Name) and id(each) not in owners]
        return [name for name in dict.fromkeys(found) if not name.isupper()]
    return []


# --- rounds at once ----------------------------------------------------------------------------------------


def left(index: torch.Tensor, high: torch.Tensor, step: torch.Tensor, on, count: int) -> torch.Tensor:
    """How many rounds a loop from `index` to `high` has for each of `count` programs, if they are `on`."""
    rounds = -torch.div(index.long() - high.long(), step.long(), rounding_mode="floor")
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
    """What loops hand on so many rounds after `new`, if it grows as from `old` to `new`. Raises Unlike otherwise.

    rounds: for each of `programs`, their numbers in the batch.
    """
    if new is UNKNOWN or new is old:
        return of(new, programs)

    def grown(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        if new.ndim == 1 and new.dtype in (torch.int32, torch.int64) and (by := new - old).any():
            return of(new, programs) + of(by, programs) * rounds.to(new.dtype)
        return of(_alike(old, new), programs)

    return mapped(grown, old, new)


def compare(guess, found) -> None:
    """Raises Unlike where a guess is not what was found."""
    if guess is not found:
        mapped(_alike, guess, found)


def _alike(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.dtype != b.dtype or a.ndim != b.ndim or not bool((a == b).all()):
        raise Unlike
    return b
