"""The instructor's page as HTML: one file that loads nothing from elsewhere. templates/desk*.html is its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...text import many, visible
from ..lms.filled import SYSTEMS
from ..templates import template
from .buttons import STEPS, Run
from .exchange import HowFar


@dataclass(frozen=True)
class State:
    """What the page shows.

    lessons: lesson -> its exercises; sharing: what `workshop attendees --json` says of each attendee who shares;
    hidden: how many do not; lessons_are: lesson -> how far it is in the exchange; runs: the newest first.
    """

    lessons: Mapping[str, Sequence[str]]
    sharing: Sequence[dict]
    hidden: int
    lessons_are: Mapping[str, HowFar]
    runs: Sequence[Run]


def whole(room: State, base_url: str, xsrf: str, hub_url: str, nonce: str) -> str:
    """The whole page. base_url: this server's; xsrf: the hidden field that it asks for; hub_url: "" without a hub."""
    busy = bool(room.runs) and room.runs[0].status is None
    about = {"xsrf": xsrf, "hub_url": hub_url, "nonce": nonce, "busy": busy, "steps": STEPS, "systems": SYSTEMS}
    return template("desk.html").render(_names(room, base_url), **about)


def live(room: State, base_url: str = "/") -> str:
    """The part that changes: the runs, and the table of attendees and lessons."""
    return template("desk_live.html").make_module(_names(room, base_url)).live()


def _names(room: State, base_url: str) -> dict:
    """What both templates use."""
    calling = sum(bool(one["stuck"]) for one in room.sharing)
    functions = {"titled": titled, "number": _number, "counted": many, "mark": _mark, "visible": visible}
    return {"room": room, "base_url": base_url, "calling": calling, **functions}


def _mark(name: str, one: dict) -> tuple[str, object, str]:
    """How an attendee stands with an exercise: a kind, a sign, and words."""
    seen = one["exercises"].get(name)
    if seen is None:
        return "open", "·", "not begun"
    if seen["passed"]:
        return "passed", "✓", "passed"
    if not seen["failed"]:
        return "open", "…", "begun"
    return "stuck" if name in one["stuck"] else "failing", seen["failed"], many(
        seen["failed"], "failed check", "failed checks"
    )


def titled(lesson: str, short: bool = False) -> str:
    """01_vector_add -> "1 Vector add", or "Vector add"."""
    words = " ".join(word.upper() if word in ("jax", "amd") else word for word in lesson.split("_")[1:])
    words = words[:1].upper() + words[1:]
    return words if short else f"{_number(lesson)} {words}"


def _number(lesson: str) -> str:
    return lesson.partition("_")[0].lstrip("0") or "0"
