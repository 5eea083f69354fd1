"""Makes a learner's text safe to show: of limited size, with invisible characters written as codes; HTML templates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path

MAX_TEXT = 20_000

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
BLANK_LETTERS = "\u115f\u1160\u3164\uffa0\u2800"  # Unicode calls them letters or symbols, but they are invisible
_MAX_COMBINING = 3
_NOT_PLAIN = re.compile(r"[^ -~\n\t]+")  # Unicode's tables are asked about these only: most text is plain


def visible(text: object, limit: int = MAX_TEXT) -> str:
    """`text` without terminal colours, with codes for invisible characters (⟨U+202E⟩), cut at `limit`.

    Blanks at the end of lines are removed too: Pygments took a minute to highlight 60,000 characters of " \\n".
    """
    text = text if isinstance(text, str) else str(text)
    cut = len(text) > limit
    text = _ANSI.sub("", text[:limit]).replace("\r\n", "\n")
    lines = _NOT_PLAIN.sub(_spelled_out, text)[:limit].split("\n")
    return "\n".join(line.rstrip() for line in lines) + ("\n… (cut)" if cut else "")


def _spelled_out(run: re.Match) -> str:
    """Some characters that are not plain, the invisible ones as codes."""
    shown, combining = [], 0
    for character in run[0]:
        category = unicodedata.category(character)
        combining = combining + 1 if category in ("Mn", "Me") else 0
        if combining > _MAX_COMBINING:  # a stack of accents would cover the lines above it
            continue
        if category in _INVISIBLE or character in BLANK_LETTERS:
            character = f"⟨U+{ord(character):04X}⟩"
        shown.append(character)
    return "".join(shown)


def many(count: int, one: str, more: str) -> str:
    """The count and its noun: "1 element is", "2 elements are"."""
    return f"{count} {one if count == 1 else more}"


def listed(words: Iterable[str]) -> str:
    """ "a", "a and b", or "a, b and c"."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def templates_in(folder: Path, **filters: Callable) -> Callable:
    """What gives a template in this folder by its name. Text is escaped, unless a template says `safe` of our HTML."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment.get_template
