"""The course's words with their definitions, which lessons show on hover or tap."""

import re
import tomllib
from functools import cache
from html import escape
from pathlib import Path

FILE = Path(__file__).with_name("glossary.toml")
# What is no running text: code, links, HTML, formulas, headings, tables.
_PROTECTED = re.compile(
    r"(```.*?```|`[^`\n]+`|!?\[[^\]]*\]\([^)]*\)|<[^>]+>|\$[^$]+\$|^#[^\n]*|^\|[^\n]*|https?://\S+)", re.M | re.S
)


class Glossary(dict):
    """word -> definition; shows itself as a list."""

    def __str__(self) -> str:
        return "\n".join(f"{word}: {definition}" for word, definition in self.items())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<dl>{''.join(f'<dt><b>{escape(w)}</b></dt><dd>{escape(d)}</dd>' for w, d in self.items())}</dl>"


@cache
def glossary() -> Glossary:
    """All words of the course and what they mean."""
    return Glossary(tomllib.loads(FILE.read_text(encoding="utf-8")))


def explain(text: str, left: dict[str, str]) -> str:
    """Markdown whose words of `left` carry their definitions; each that was found is taken out of `left`."""
    parts = _PROTECTED.split(text)
    for number, part in enumerate(parts):
        if number % 2 == 0:
            parts[number] = _words(part, left)
        elif part.startswith("`tl.") and (word := re.match(r"[\w.]+", part[1:])[0]) in left:
            parts[number] = _with(part, left.pop(word))
    return "".join(parts)


def _words(text: str, left: dict[str, str]) -> str:
    words = [word for word in left if not word.startswith("tl.")]
    if not words:
        return text
    forms = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))

    def marked(match: re.Match) -> str:
        definition = left.pop(match[1], "")  # its second time it is left as it is
        return _with(match[0], definition) if definition else match[0]

    return re.sub(rf"\b({forms})s?\b", marked, text)


def _with(words: str, definition: str) -> str:
    return f'<abbr title="{escape(definition)}">{words}</abbr>'
