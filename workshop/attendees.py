"""Who is where in a room, for the instructor: what attendees share of their progress, those who need help first."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from workshop import shared
from workshop.shared import Seen
from workshop.syllabus import LESSONS, SYLLABUS

STUCK = 5  # failed checks of an exercise that is not passed: somebody should go there


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
        return {"lessons": LESSONS, "hidden": self.hidden, "sharing": [one.to_json() for one in self.sharing]}

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
    found = {name: shared.read(folder / name) for name in people}
    sharing = [Attendee(name, seen) for name, seen in found.items() if seen is not None]
    sharing.sort(key=lambda one: (not one.stuck, one.name))
    return Attendees(sharing, len(people) - len(sharing))
