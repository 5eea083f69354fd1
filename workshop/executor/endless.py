"""Sees that a `while` loop never ends: what its condition follows from is again as it was before an earlier round."""

from __future__ import annotations

import ast

import torch

from .memory import Memory
from .values import UNKNOWN, View, plain, tensor


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
        if not same.any():
            return None
        if self.reads:  # what one program changes, another may read
            alike = not (go & ~same).any() and all(map(torch.equal, self.memory.contents(), self.contents))
            return same if alike else None
        return same

    def why(self, code: str) -> str:
        """Why the loop never ends. code: its line."""
        asked = " or ".join(_names(code)) or "what its condition asks for"
        asked += " or the memory that its condition reads" * self.reads
        if self.count - self.since > 2:
            return f"This loop never ends: each of its rounds brings back earlier values of {asked}"
        return f"This loop never ends: no round changes {asked}"


def equal(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Which elements are the same; a NaN is the same as another."""
    same = a == b
    return same | (a != a) & (b != b) if a.is_floating_point() else same


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
