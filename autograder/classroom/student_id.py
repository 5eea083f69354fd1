"""From a name to an id that is safe as a folder, in a URL and in a spreadsheet."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from ..text import BLANK_LETTERS


def student_id(name: str) -> str:
    """An id that is safe as a folder, in a URL and in a spreadsheet: blanks become "_", further changes a mark."""
    composed = re.sub(r"\s+", "_", unicodedata.normalize("NFC", name).strip())
    cleaned = re.sub(rf"[^\w.@-]|[{BLANK_LETTERS}]", "_", unicodedata.normalize("NFKC", composed))
    cleaned = re.sub(r"^[^\w]+|^_+|[.]+$", "", cleaned)[:60]
    return cleaned if cleaned == composed else f"{cleaned or 'student'}-{short_hash(composed, 4)}"


def short_hash(name: str, length: int) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:length]
