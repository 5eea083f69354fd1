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
    return Path(named) if (named := os.environ.get(VARIABLE)) else None


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
    # The folder gives its files its own group, which is the instructor's.
    replace_json(folder() / FILE, {"version": 1, "exercises": content}, 0o640)


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
        last = datetime.fromisoformat(values["last"]).astimezone(UTC)
        return Seen(values["passed"] is True, min(max(int(values["failed"]), 0), 9999), last)
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


def ago(then: datetime) -> str:
    """How long ago that was, in words."""
    minutes = (datetime.now(UTC) - then) // timedelta(minutes=1)
    for unit, name in ((24 * 60, "d"), (60, "h"), (1, "min")):
        if minutes >= unit:
            return f"{minutes // unit} {name} ago"
    return "now"


def attendees(folder: Path | None = None) -> dict:
    """What is shared, as an object for JSON. sharing: those who share, who needs help first, then by name.

    folder: it has a folder for each attendee (ROOM/progress); one that is not there, or is not ours to read, is empty.
    """
    folder = folder or Path(os.environ.get("ROOM", "/srv/workshop"), "progress")
    try:
        people = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError:
        people = []
    sharing = [_attendee(name, seen) for name in people if (seen := read(folder / name)) is not None]
    sharing.sort(key=lambda one: (not one["stuck"], one["name"]))
    titles = {lesson: titled(lesson) for lesson in LESSONS}
    return {"lessons": LESSONS, "titles": titles, "hidden": len(people) - len(sharing), "sharing": sharing}


def _attendee(name: str, seen: dict[str, Seen]) -> dict:
    """here: the exercise that they worked on last. stuck: those that fail again and again, the worst first."""
    here = max(seen, key=lambda each: seen[each].last, default=None)
    stuck = [each for each, one in seen.items() if not one.passed and one.failed >= STUCK]
    exercises = {each: {"passed": one.passed, "failed": one.failed} for each, one in seen.items()}
    return {"name": name, "here": here, "ago": ago(seen[here].last) if here else None,
            "stuck": sorted(stuck, key=lambda each: -seen[each].failed), "exercises": exercises}  # fmt: skip


def in_words(found: dict) -> str:
    """What `attendees` has found, a line for each of them."""
    lines = [f"{len(found['sharing'])} share their progress, {found['hidden']} do not."]
    for one in found["sharing"]:
        here, exercises = one["here"], one["exercises"]
        where = f"{SYLLABUS[here].notebook}, {here}, {one['ago']}" if here else "–"
        passed = sum(each["passed"] for each in exercises.values())
        stuck = "".join(f"  STUCK: {name}, {exercises[name]['failed']} failed checks" for name in one["stuck"])
        lines.append(f"{one['name']:<31} {passed:>2} passed  {where}{stuck}")
    return "\n".join(lines)
