"""Points earned. They are kept in one file beside the notebooks and sent nowhere."""

import contextlib
import html
import json
import os
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from workshop.syllabus import SYLLABUS, Lesson

FILE = ".progress.json"
VARIABLE = "WORKSHOP_PROGRESS"  # names another file
MARKS = {"passed": "✓", "started": "…", "open": "·"}


@dataclass
class Entry:
    """One exercise's history. `score` is the best so far, of `points`; counts never go down."""

    score: float = 0
    points: float = 0
    passed: bool = False
    checks: int = 0
    failed: int = 0
    hints: int = 0
    last: str = ""


@dataclass
class Progress:
    """Every exercise's entry, in the course's order; shows itself as a table."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def entry(self, name: str) -> Entry:
        return self.entries.get(name, Entry())

    @property
    def score(self) -> float:
        return sum(self.entry(name).score for name in SYLLABUS)

    @property
    def points(self) -> float:
        """What the course can give, without the stretch exercises."""
        return sum(lesson.points for lesson in SYLLABUS.values() if not lesson.stretch)

    def next(self) -> Lesson | None:
        """The first exercise that is not passed, stretch exercises last; None when all are."""
        waiting = [lesson for lesson in SYLLABUS.values() if not self.entry(lesson.name).passed]
        return min(waiting, key=lambda lesson: lesson.stretch, default=None)

    def state(self, name: str) -> str:
        entry = self.entry(name)
        if entry.passed:
            return "passed"
        return "started" if entry.checks or entry.hints else "open"

    def headline(self) -> str:
        following = self.next()
        then = (
            f"Next: {following.name} in {following.notebook}." if following else "Every exercise is passed."
        )
        return f"{_number(self.score)} of {self.points} points. {then}"

    def __str__(self) -> str:
        lines = [self.headline(), ""]
        for name, lesson in SYLLABUS.items():
            entry = self.entry(name)
            stretch = "  stretch" if lesson.stretch else ""
            earned = f"{_number(entry.score):>4} / {lesson.points}"
            lines.append(f"{MARKS[self.state(name)]} {lesson.notebook:<20} {name:<22} {earned}{stretch}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(self._row(lesson) for lesson in SYLLABUS.values())
        head = "".join(
            f"<th style='text-align:left'>{label}</th>" for label in ("", "notebook", "exercise", "points")
        )
        return f"<p><b>{html.escape(self.headline())}</b></p><table><tr>{head}</tr>{rows}</table>"

    def _row(self, lesson: Lesson) -> str:
        state = self.state(lesson.name)
        earned = f"{_number(self.entry(lesson.name).score)} / {lesson.points}"
        label = f"{lesson.name} (stretch)" if lesson.stretch else lesson.name
        cells = (f"<span title='{state}'>{MARKS[state]}</span>", lesson.notebook, label, earned)
        return "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in cells) + "</tr>"


def path() -> Path:
    """The file of the progress: beside the notebook that runs, unless WORKSHOP_PROGRESS names another."""
    return Path(os.environ.get(VARIABLE) or FILE).absolute()


def progress() -> Progress:
    """What has been earned so far. A file that cannot be read counts as nothing earned."""
    try:
        stored = json.loads(path().read_text(encoding="utf-8"))
        exercises = stored["exercises"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Progress()
    return Progress({name: _entry(values) for name, values in exercises if isinstance(values, dict)})


def record(exercise: str, score: float, points: float, passed: bool | None = None) -> Progress:
    """Note one check of an exercise: points earned out of points possible. The best score is kept."""
    passed = score >= points if passed is None else passed

    def update(entry: Entry) -> None:
        entry.score = max(entry.score, score)
        entry.points = points
        entry.passed = entry.passed or passed
        entry.checks += 1
        entry.failed += not passed

    return _update(exercise, update)


def record_hint(exercise: str) -> Progress:
    """Note that one more hint of an exercise was opened."""

    def update(entry: Entry) -> None:
        entry.hints += 1

    return _update(exercise, update)


def _update(exercise: str, change) -> Progress:
    current = progress()
    entry = current.entries.setdefault(exercise, Entry())
    change(entry)
    entry.last = datetime.now(UTC).isoformat(timespec="seconds")
    _save(current)
    return current


def _save(current: Progress) -> None:
    """Replace the file in one step. If the folder is read-only, progress is not saved; the lesson continues."""
    target = path()
    content = {"version": 1, "exercises": {name: vars(entry) for name, entry in current.entries.items()}}
    with contextlib.suppress(OSError):
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f"{FILE}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=1)
            os.replace(temporary, target)
        except OSError:
            os.unlink(temporary)
            raise


def _entry(values: dict) -> Entry:
    """An entry from the file, without what is missing, unknown or of another type."""
    entry = Entry()
    for name, default in vars(Entry()).items():
        value = values.get(name, default)
        fits = isinstance(value, (int, float)) if type(default) is int else isinstance(value, type(default))
        if fits:
            setattr(entry, name, value)
    return entry


def _number(value: float) -> str:
    return f"{value:g}"
