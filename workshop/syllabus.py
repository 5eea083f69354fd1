"""What the course asks, in the order it is taught: exercises (syllabus.toml), and questions (questions.toml)."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from workshop.advice import did_you_mean


@dataclass(frozen=True)
class Lesson:
    """One exercise of the course. shows: in one sentence, what it has shown who has passed it."""

    name: str
    notebook: str
    points: int
    stretch: bool = False
    shows: str = ""


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


def _told(file: str) -> dict[str, dict]:
    return tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))


_LESSONS = _told("syllabus.toml")
LESSONS = {notebook: list(own) for notebook, own in _LESSONS.items()}  # lesson -> its exercises
SYLLABUS = {name: Lesson(name, notebook, **about) for notebook, own in _LESSONS.items() for name, about in own.items()}
QUESTIONS = {name: _question(**about) for name, about in _told("questions.toml").items()}


def find(name: str) -> Lesson:
    """The exercise of that name. Raises ValueError that names similar ones."""
    try:
        return SYLLABUS[name]
    except KeyError:
        raise ValueError(f"there is no exercise {name!r}. {did_you_mean(name, SYLLABUS)}") from None
