"""The questions that lessons ask before they show an answer, from questions.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Question:
    """A choice. `options` maps each choice to what is said after it; `right` is one of them."""

    ask: str
    options: dict[str, str]
    right: str

    def takes(self, choice: str) -> bool:
        """Whether it has this choice."""
        return choice in self.options

    def foresaw(self, choice: str) -> bool:
        return choice == self.right

    def said(self, choice: str) -> str:
        """What is said after a choice, in plain text."""
        return f"✓ You said it: {choice}." if self.foresaw(choice) else f"✗ You said “{choice}”; it is “{self.right}”."


@dataclass(frozen=True)
class Estimate:
    """A number to be guessed between `low` and `high`. `why` is said after the guess."""

    ask: str
    low: float
    high: float
    step: float
    right: float
    why: str

    def takes(self, choice: str) -> bool:
        try:
            return self.low <= float(choice) <= self.high
        except ValueError:
            return False

    def foresaw(self, choice: str) -> bool:
        """A guess counts if it is at most a quarter off."""
        return self.takes(choice) and abs(float(choice) - self.right) <= self.right / 4

    def said(self, choice: str) -> str:
        return f"You said {float(choice):g}, {self.answer()}"

    def answer(self) -> str:
        return f"it is {self.right:g}. {self.why}"


def _question(ask: str, right: str | float, **said) -> Question | Estimate:
    return Question(ask, said, right) if isinstance(right, str) else Estimate(ask, right=right, **said)


_TOLD = tomllib.loads(Path(__file__).with_name("questions.toml").read_text(encoding="utf-8"))
QUESTIONS = {name: _question(**about) for name, about in _TOLD.items()}
