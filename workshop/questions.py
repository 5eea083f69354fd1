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


@dataclass(frozen=True)
class Estimate:
    """A number to be guessed between `low` and `high`. `why` is said after the guess."""

    ask: str
    low: float
    high: float
    step: float
    right: float
    why: str


def _question(ask: str, right: str | float, **said) -> Question | Estimate:
    return Question(ask, said, right) if isinstance(right, str) else Estimate(ask, right=right, **said)


_TOLD = tomllib.loads(Path(__file__).with_name("questions.toml").read_text(encoding="utf-8"))
QUESTIONS = {name: _question(**about) for name, about in _TOLD.items()}


def possible(question: Question | Estimate, choice: str) -> bool:
    """Whether a question has this choice."""
    if isinstance(question, Question):
        return choice in question.options
    try:
        return question.low <= float(choice) <= question.high
    except ValueError:
        return False


def right(name: str, choice: str) -> bool:
    """Whether a kept choice was right; an estimate counts if it is at most a quarter off."""
    question = QUESTIONS[name]
    if not possible(question, choice):
        return False
    if isinstance(question, Question):
        return choice == question.right
    return abs(float(choice) - question.right) <= question.right / 4
