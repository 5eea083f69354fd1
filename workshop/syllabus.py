"""The exercises in the order they are taught, with the points each can earn, from syllabus.toml."""

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


_TOLD = tomllib.loads(Path(__file__).with_name("syllabus.toml").read_text(encoding="utf-8"))
LESSONS = {notebook: list(own) for notebook, own in _TOLD.items()}  # lesson -> its exercises
SYLLABUS = {name: Lesson(name, notebook, **about) for notebook, own in _TOLD.items() for name, about in own.items()}


def titled(notebook: str) -> tuple[str, str]:
    """The number and the title of a lesson: ("1b", "Tiles") for 01b_tiles."""
    number, *words = (word.upper() if word in ("jax", "amd") else word for word in notebook.split("_"))
    title = " ".join(words)
    return number.lstrip("0") or "0", title[:1].upper() + title[1:]


def find(name: str) -> Lesson:
    """The exercise of that name. Raises ValueError that names similar ones."""
    try:
        return SYLLABUS[name]
    except KeyError:
        raise ValueError(f"there is no exercise {name!r}. {did_you_mean(name, SYLLABUS)}") from None
