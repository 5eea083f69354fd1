"""What an attendee of a room lets the instructor see, while they want to: no code, and no answer.

It is one file in the folder that WORKSHOP_SHARE names. The room makes that folder: it belongs to the attendee, its
group is the instructor's, and nobody else can enter. The file is there while its owner shares. No other switch exists.
The instructor's `attendees` reads all these files: who is where, and who needs help first.
"""

import json
import os
import stat
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from workshop.syllabus import LESSONS, SYLLABUS, titled

VARIABLE = "WORKSHOP_SHARE"
FILE = "progress.json"
MOST = 65_536  # bytes that are read of it
STUCK = 5  # failed checks of an exercise that is not passed: somebody should go there
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


class Told(str):
    """Sentences that a notebook shows as they are."""

    __repr__ = str.__str__


def told() -> Told:
    """Whether the instructor of the room sees this progress, and how to change it."""
    if folder() is None:
        return Told("This is no room: nobody else can see your progress.")
    choice = "off" if is_on() else "on"
    in_a_cell = f"from workshop import share_progress; share_progress('{choice}')"
    how = f"run `{in_a_cell}` in a cell, or `workshop share-progress {choice}` in a terminal."
    if is_on():
        return Told(f"The instructor sees {WHAT}. To stop, and to delete what they see, {how}")
    return Told(
        "The instructor does not see your progress. To let them, so that they come when you are stuck, "
        f"{how} They see {WHAT}."
    )


def write(entries: dict) -> None:
    """Share of these progress.Entry what WHAT says, in place of what was shared before. Raises OSError."""
    content = {name: {"passed": one.passed, "failed": one.failed, "last": one.last} for name, one in entries.items()}
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


def replace_json(path: Path, content: dict, mode: int = 0o600) -> None:
    """Write a JSON object in place of what was there. Raises OSError."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        os.fchmod(handle, mode)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


@dataclass(frozen=True)
class Attendee:
    """What one attendee shares: exercise -> what is seen of it."""

    name: str
    seen: dict[str, Seen]

    @property
    def here(self) -> str | None:
        """The exercise that they worked on last; None before the first one."""
        return max(self.seen, key=lambda name: self.seen[name].last, default=None)

    @property
    def stuck(self) -> list[str]:
        """The exercises that fail again and again, the worst first."""
        failing = [name for name, seen in self.seen.items() if not seen.passed and seen.failed >= STUCK]
        return sorted(failing, key=lambda name: -self.seen[name].failed)

    def to_json(self) -> dict:
        exercises = {name: {"passed": seen.passed, "failed": seen.failed} for name, seen in self.seen.items()}
        when = ago(self.seen[self.here].last) if self.here else None
        return {"name": self.name, "here": self.here, "ago": when, "stuck": self.stuck, "exercises": exercises}


@dataclass(frozen=True)
class Attendees:
    """sharing: those who share, who needs help first, then by name. hidden: how many do not."""

    sharing: list[Attendee]
    hidden: int

    def to_json(self) -> dict:
        sharing, titles = [one.to_json() for one in self.sharing], {lesson: titled(lesson) for lesson in LESSONS}
        return {"lessons": LESSONS, "titles": titles, "hidden": self.hidden, "sharing": sharing}

    def __str__(self) -> str:
        lines = [f"{len(self.sharing)} share their progress, {self.hidden} do not."]
        for one in self.sharing:
            where = f"{SYLLABUS[one.here].notebook}, {one.here}, {ago(one.seen[one.here].last)}" if one.here else "–"
            passed = sum(seen.passed for seen in one.seen.values())
            help_with = "".join(f"  STUCK: {name}, {one.seen[name].failed} failed checks" for name in one.stuck)
            lines.append(f"{one.name:<31} {passed:>2} passed  {where}{help_with}")
        return "\n".join(lines)


def ago(then: datetime) -> str:
    """How long ago that was, in words."""
    passed = max(datetime.now(UTC) - then, timedelta())
    if passed < timedelta(minutes=1):
        return "now"
    if passed < timedelta(hours=1):
        return f"{passed // timedelta(minutes=1)} min ago"
    return f"{passed // timedelta(hours=1)} h ago" if passed < timedelta(days=1) else f"{passed.days} d ago"


def attendees(folder: Path | None = None) -> Attendees:
    """Read what is shared.

    folder: it has a folder for each attendee (ROOM/progress); one that is not there, or is not ours to read, is empty.
    """
    folder = folder or Path(os.environ.get("ROOM", "/srv/workshop"), "progress")
    try:
        people = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError:
        people = []
    found = {name: read(folder / name) for name in people}
    sharing = [Attendee(name, seen) for name, seen in found.items() if seen is not None]
    sharing.sort(key=lambda one: (not one.stuck, one.name))
    return Attendees(sharing, len(people) - len(sharing))
