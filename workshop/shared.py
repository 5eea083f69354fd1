"""What an attendee of a room lets the instructor see, while they want to: no code, and no answer.

It is one file in the folder that WORKSHOP_SHARE names. The room makes that folder: it belongs to the attendee, its
group is the instructor's, and nobody else can enter. The file is there while its owner shares. No other switch exists.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from workshop.files import replace_json
from workshop.syllabus import SYLLABUS

VARIABLE = "WORKSHOP_SHARE"
FILE = "progress.json"
MOST = 65_536  # bytes that are read of it
WHAT = (
    "your name in this room and, for each exercise: whether it is passed, how many checks failed, "
    "and when you last worked on it. Never your code"
)


@dataclass(frozen=True)
class Seen:
    """What the instructor sees of one exercise. last: when it was checked, or a hint was opened."""

    passed: bool
    failed: int
    last: datetime


def folder() -> Path | None:
    """Where this attendee's file belongs; None outside a room."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def is_on() -> bool:
    """Whether this attendee shares their progress now."""
    here = folder()
    return here is not None and os.path.exists(here / FILE)


def write(entries: dict[str, Seen]) -> None:
    """Share this, in place of what was shared before. Raises OSError."""
    content = {name: asdict(seen) | {"last": seen.last.isoformat()} for name, seen in entries.items()}
    mode = 0o640  # the folder gives its files its own group, which is the instructor's
    replace_json(folder() / FILE, {"version": 1, "exercises": content}, mode)


def stop() -> None:
    """Delete what was shared. Raises OSError."""
    (folder() / FILE).unlink(missing_ok=True)


def read(folder: Path) -> dict[str, Seen] | None:
    """What the owner of this folder shares; None when they do not.

    The owner can put anything there. So links are not followed, files that somebody else owns are not read, and what
    `write` would not have written is left out.
    """
    try:
        handle = os.open(folder / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode) or about.st_uid != folder.stat().st_uid:
                return None
            exercises = json.loads(file.read(MOST))["exercises"]
        return {name: seen for name in SYLLABUS if (seen := _seen(exercises.get(name)))}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _seen(values: object) -> Seen | None:
    try:
        last = datetime.fromisoformat(values["last"])
        failed = int(values["failed"])
        return Seen(values["passed"] is True, min(max(failed, 0), 9999), last.astimezone(UTC))
    except (LookupError, TypeError, ValueError, OverflowError):
        return None
