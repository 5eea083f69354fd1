"""From a name to an id that is safe as a folder, in a URL and in a spreadsheet."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from ...text import BLANK_LETTERS

_UNSEEN = "\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"  # marks that show nothing


def student_id(name: str) -> str:
    """An id that is safe as a folder, in a URL and in a spreadsheet: blanks become "_", further changes a mark."""
    composed = re.sub(r"\s+", "_", unicodedata.normalize("NFC", name).strip())
    safe = re.sub(f"[{BLANK_LETTERS}{_UNSEEN}]", "_", unicodedata.normalize("NFKC", composed))
    safe = "".join(c if in_a_word(c) or c in ".@-" else "_" for c in safe).rstrip(".")
    first = next((at for at, c in enumerate(safe) if c.isalnum()), len(safe))
    cleaned = safe[first : first + 60]
    return cleaned if cleaned == composed else f"{cleaned or 'student'}-{short_hash(composed, 4)}"


def in_a_word(c: str) -> bool:
    """Whether a character belongs to a word, as Ruby sees it. Python's regular expressions leave out Hindi's vowels."""
    return c == "_" or c.isalnum() or unicodedata.category(c)[0] == "M"


def short_hash(name: str, length: int) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:length]
