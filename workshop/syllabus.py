"""What the course asks, in the order it is taught, and its words: each from a table beside this file.

Exercises are in syllabus.toml, questions in questions.toml, and words with their definitions in glossary.toml.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from html import escape
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


def titled(notebook: str) -> tuple[str, str]:
    """The number and the title of a lesson: ("1b", "Tiles") for 01b_tiles."""
    number, *words = (word.upper() if word in ("jax", "amd") else word for word in notebook.split("_"))
    title = " ".join(words)
    return number.lstrip("0") or "0", title[:1].upper() + title[1:]


def find(name: str) -> Lesson:
    """The exercise of that name. Raises ValueError that names similar ones."""
    if name not in SYLLABUS:
        raise ValueError(f"there is no exercise {name!r}. {did_you_mean(name, SYLLABUS)}")
    return SYLLABUS[name]


# What is no running text: code, links, HTML, formulas, headings, tables.
_PROTECTED = r"```.*?```|`[^`\n]+`|!?\[[^\]]*\]\([^)]*\)|<[^>]+>|\$[^$]+\$|^#[^\n]*|^\|[^\n]*|https?://\S+"


class Glossary(dict):
    """word -> definition; shows itself as a list."""

    def __repr__(self) -> str:
        return "\n".join(f"{word}: {definition}" for word, definition in self.items())

    def _repr_html_(self) -> str:
        return f"<dl>{''.join(f'<dt><b>{escape(w)}</b></dt><dd>{escape(d)}</dd>' for w, d in self.items())}</dl>"


@cache
def glossary() -> Glossary:
    """All words of the course and what they mean."""
    return Glossary(_told("glossary.toml"))


def explain(text: str, left: dict[str, str]) -> str:
    """Markdown whose words of `left` carry their definitions; each that was found is taken out of `left`."""
    words = sorted((word for word in left if not word.startswith("tl.")), key=len, reverse=True)

    def marked(match: re.Match) -> str:
        of_triton = re.match(r"`(tl\.[\w.]*)", match[0])
        definition = left.pop(of_triton[1] if of_triton else match["word"], "")  # its second time it is left as it is
        return f'<abbr title="{escape(definition)}">{match[0]}</abbr>' if definition else match[0]

    return re.sub(rf"{_PROTECTED}|\b(?P<word>{'|'.join(map(re.escape, words))})s?\b", marked, text, flags=re.M | re.S)
