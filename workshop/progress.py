"""Points earned. They are kept in one file of the course; who sits in a room can let the instructor see them."""

import contextlib
import html
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from workshop import shared
from workshop.files import replace_json
from workshop.syllabus import LESSONS, SYLLABUS, Lesson

FILE = ".progress.json"
VARIABLE = "WORKSHOP_PROGRESS"  # names another file
COURSE = Path(__file__).resolve().parent.parent
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
    predictions: dict[str, str] = field(default_factory=dict)  # the first choice in each question

    def entry(self, name: str) -> Entry:
        return self.entries.get(name, Entry())

    @property
    def score(self) -> float:
        """What has been earned, without the stretch exercises."""
        return sum(self.entry(name).score for name, lesson in SYLLABUS.items() if not lesson.stretch)

    @property
    def stretch(self) -> float:
        """What the stretch exercises have given on top."""
        return sum(self.entry(name).score for name, lesson in SYLLABUS.items() if lesson.stretch)

    @property
    def points(self) -> float:
        """What the course can give, without the stretch exercises."""
        return sum(lesson.points for lesson in SYLLABUS.values() if not lesson.stretch)

    def next(self, after: str = "") -> Lesson | None:
        """The first exercise that is not passed, stretch exercises last; None when all are.

        after: an exercise. Those that follow it are looked at first, in its own notebook stretch exercises too.
        """
        names = list(SYLLABUS)
        behind = names[names.index(after) + 1 :] if after in names else []
        waiting = [lesson for lesson in SYLLABUS.values() if not self.entry(lesson.name).passed]

        def order(lesson: Lesson) -> tuple[bool, bool, bool]:
            follows = lesson.name in behind
            here = follows and lesson.notebook == SYLLABUS[after].notebook
            return not here, lesson.stretch, not follows

        return min(waiting, key=order, default=None)

    def state(self, name: str) -> str:
        entry = self.entry(name)
        if entry.passed:
            return "passed"
        return "started" if entry.checks or entry.hints else "open"

    def foreseen(self) -> str:
        """How many predictions were right, as a sentence. It is a score of its own, and part of no grade."""
        from workshop.questions import QUESTIONS, right

        kept = {name: choice for name, choice in self.predictions.items() if name in QUESTIONS}
        good = sum(right(name, choice) for name, choice in kept.items())
        return f"Predictions: {good} of {len(kept)} right; no grade depends on them." if kept else ""

    def of_lesson(self, notebook: str) -> tuple[float, int]:
        """(points earned, points to earn) of a lesson, without stretch exercises."""
        own = [name for name in LESSONS[notebook] if not SYLLABUS[name].stretch]
        return sum(self.entry(name).score for name in own), sum(SYLLABUS[name].points for name in own)

    def welcome(self, notebook: str) -> str:
        """What has been earned in a lesson and what is next; empty if nothing was tried in it."""
        own = LESSONS.get(notebook, [])
        if not any(self.entry(name).checks for name in own):
            return ""
        earned, points = self.of_lesson(notebook)
        waiting = [name for name in own if not self.entry(name).passed]
        if waiting:
            then = f"next is {waiting[0]}"
        else:
            following = self.next(own[-1])
            then = f"next is {following.name} in {following.notebook}" if following else "every exercise is passed"
        return f"Welcome back: {_number(earned)} of {points} points in this lesson, {then}."

    def headline(self) -> str:
        following = self.next()
        then = f"Next: {following.name} in {following.notebook}." if following else "Every exercise is passed."
        more = f", and {_number(self.stretch)} from stretch exercises" if self.stretch else ""
        return f"{_number(self.score)} of {self.points} points{more}. {then}"

    def __str__(self) -> str:
        lines = [self.headline(), ""]
        for name, lesson in SYLLABUS.items():
            entry = self.entry(name)
            stretch = "  stretch" if lesson.stretch else ""
            earned = f"{_number(entry.score):>4} / {lesson.points}"
            lines.append(f"{MARKS[self.state(name)]} {lesson.notebook:<20} {name:<22} {earned}{stretch}")
        return "\n".join([*lines, "", *self._about(), *([str(Sharing())] if shared.folder() else [])])

    def _about(self) -> list[str]:
        done = "" if self.next() else "A page to show, and what to build next: `workshop progress --page mine.html`."
        return [words for words in (done, self.foreseen(), f"Your progress is kept in {path()}.") if words]

    __repr__ = __str__

    def _repr_html_(self) -> str:
        lessons = "".join(map(self._lesson, LESSONS))
        sharing = f"<p>{html.escape(str(Sharing()))}</p>" if shared.folder() else ""
        about = "".join(f"<p>{html.escape(words)}</p>" for words in self._about())
        return f"<p><b>{html.escape(self.headline())}</b></p>{lessons}{about}{sharing}"

    def _lesson(self, notebook: str) -> str:
        """A lesson's points, and its exercises below, folded unless the lesson is the one at hand."""
        earned, points = self.of_lesson(notebook)
        rows = "".join(self._row(lesson) for lesson in SYLLABUS.values() if lesson.notebook == notebook)
        unfolded = " open" * any(strip.notebook == notebook for strip in _shown)
        return (
            f"<details{unfolded}><summary>{notebook}: {_number(earned)} of {points}{' ✓' * (earned >= points)}"
            f"</summary><table>{rows}</table></details>"
        )

    def _row(self, lesson: Lesson) -> str:
        state = self.state(lesson.name)
        earned = f"{_number(self.entry(lesson.name).score)} / {lesson.points}"
        label = f"{lesson.name} (stretch)" if lesson.stretch else lesson.name
        cells = (f"<span title='{state}'>{MARKS[state]}</span>", label, earned)
        return "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in cells) + "</tr>"


class Sharing:
    """Whether the instructor of the room sees this progress, as sentences that say how to change it."""

    def __str__(self) -> str:
        if shared.folder() is None:
            return "This is no room: nobody else can see your progress."
        if shared.is_on():
            return f"The instructor sees {shared.WHAT}. To stop, and to delete what they see, {_to_choose('off')}"
        return (
            "The instructor does not see your progress. To let them, so that they come when you are stuck, "
            f"{_to_choose('on')} They see {shared.WHAT}."
        )

    __repr__ = __str__


def _to_choose(choice: str) -> str:
    in_a_cell = f"from workshop import share_progress; share_progress('{choice}')"
    return f"run `{in_a_cell}` in a cell, or `workshop share-progress {choice}` in a terminal."


class Strip:
    """The lessons in a row, with this one marked and the points of each; a link leads to each of the others.

    What a notebook shows of it changes with the progress file (`refresh`).
    """

    def __init__(self, notebook: str):
        self.notebook, self.greeting = notebook, progress().welcome(notebook)
        self._handle = None

    def lessons(self) -> list[tuple[str, float, int]]:
        """(notebook, points earned, points to earn) of each lesson, without stretch exercises."""
        current = progress()
        return [(notebook, *current.of_lesson(notebook)) for notebook in LESSONS]

    def __str__(self) -> str:
        lines = [
            f"{'▶' if notebook == self.notebook else ' '} {notebook:<22} {_number(earned)} of {points}"
            for notebook, earned, points in self.lessons()
        ]
        return "\n".join([*lines, *([self.greeting] if self.greeting else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        steps = "".join(self._step(*lesson) for lesson in self.lessons())
        greeting = f"<p>{html.escape(self.greeting)}</p>" if self.greeting else ""
        return f"<nav class='workshop-strip' aria-label='lessons'><style>{_STRIP_STYLE}</style>{steps}</nav>{greeting}"

    def _ipython_display_(self) -> None:
        from IPython.display import display

        self._handle = display(self._bundle(), raw=True, display_id=True)
        _shown[:] = [self]

    def refresh(self) -> None:
        """Show the points as they are now, in the place where this strip was shown."""
        if self._handle:
            self._handle.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}

    def _step(self, notebook: str, earned: float, points: int) -> str:
        number, _, title = notebook.partition("_")
        here = notebook == self.notebook
        done = round(100 * earned / points) if points else 0
        words = (
            f"<b>{html.escape(number.lstrip('0') or '0')}</b> {html.escape(_titled(title))}"
            f"<small>{'✓ ' if done == 100 else ''}{_number(earned)} of {points}</small><i style='width:{done}%'></i>"
        )
        if here:
            return f"<span aria-current='page'>{words}</span>"
        return f"<a href='{html.escape(notebook)}.ipynb'>{words}</a>"


def _titled(name: str) -> str:
    words = [word.upper() if word in ("jax", "amd") else word for word in name.split("_")]
    return " ".join(words)[:1].upper() + " ".join(words)[1:]


_STRIP_STYLE = """
.workshop-strip {display: grid; grid-template-columns: repeat(auto-fit, minmax(96px, 1fr)); gap: 6px;
  max-width: 880px; margin: 4px 0;
  font: 13px/1.35 var(--jp-content-font-family, system-ui, sans-serif); color: var(--jp-content-font-color1, inherit)}
.workshop-strip > * {position: relative; padding: 5px 8px 8px; overflow: hidden;
  border-radius: 4px; border: 1px solid rgba(127, 127, 127, .45);
  color: inherit !important; text-decoration: none !important}
.workshop-strip > [aria-current] {border: 2px solid #56b4e9; background: rgba(86, 180, 233, .16)}
.workshop-strip small {display: block; font-size: 12px; opacity: .8}
.workshop-strip i {position: absolute; left: 0; bottom: 0; height: 4px; background: #009e73}
"""


def here(notebook: str) -> Strip:
    """Where you are: the lessons in a row, `notebook` among them marked, with the points earned so far."""
    return Strip(notebook)


_shown: list[Strip] = []  # the strip of this kernel's notebook, if it has been shown


def path() -> Path:
    """The file of the progress, the same one from every folder, unless WORKSHOP_PROGRESS names another.

    It is in notebooks/ of the course around this folder, or of the course that this package is part of. A notebook
    that stands alone, without a course, has it beside itself.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named).absolute()
    here = Path.cwd()
    for folder in (*(each / "notebooks" for each in (here, *here.parents)), COURSE / "notebooks"):
        if (folder / "00_setup.ipynb").is_file() and os.access(folder, os.W_OK):
            return folder / FILE
    return here / FILE


def progress() -> Progress:
    """What has been earned so far. A file that cannot be read counts as nothing earned."""
    try:
        stored = json.loads(path().read_text(encoding="utf-8"))
        exercises = stored["exercises"].items()
        said = stored.get("predictions") or {}
        predictions = {str(name): choice for name, choice in said.items() if isinstance(choice, str)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Progress()
    return Progress({name: _entry(values) for name, values in exercises if isinstance(values, dict)}, predictions)


def share_progress(choice: str = "") -> Sharing:
    """Let the instructor of the room see your progress ("on"), or no longer ("off"); without a choice: say which it is.

    ValueError for another choice, and for "on" outside a room.
    """
    if choice not in ("", "on", "off"):
        raise ValueError(f"share_progress({choice!r}): expected 'on' or 'off'")
    if choice == "on" and shared.folder() is None:
        raise ValueError("this is no room: there is no instructor who could see your progress")
    if choice == "on":
        _share(progress())
    elif choice == "off" and shared.folder():
        shared.stop()
    return Sharing()


def _share(current: Progress) -> None:
    seen = {}
    for name, entry in current.entries.items():
        with contextlib.suppress(ValueError):  # a time that somebody wrote into the file
            seen[name] = shared.Seen(entry.passed, entry.failed, datetime.fromisoformat(entry.last))
    shared.write(seen)


def record(exercise: str, score: float, points: float, passed: bool | None = None) -> Progress:
    """Note one check of an exercise: points earned out of points possible. The best score is kept."""
    passed = score >= points if passed is None else passed
    with _changing(exercise) as (current, entry):
        entry.score, entry.points = max(entry.score, score), points
        entry.passed = entry.passed or passed
        entry.checks += 1
        entry.failed += not passed
    return current


def record_hint(exercise: str) -> Progress:
    """Note that one more hint of an exercise was opened."""
    with _changing(exercise) as (current, entry):
        entry.hints += 1
    return current


def record_prediction(question: str, choice: str) -> Progress:
    """Keep the first choice that was made in a question."""
    current = progress()
    current.predictions.setdefault(question, choice)
    _save(current)
    return current


@contextlib.contextmanager
def _changing(exercise: str) -> Iterator[tuple[Progress, Entry]]:
    """An entry that is saved, shown and shared when it has been changed."""
    current = progress()
    entry = current.entries.setdefault(exercise, Entry())
    yield current, entry
    entry.last = datetime.now(UTC).isoformat(timespec="seconds")
    _save(current)
    for strip in _shown:
        strip.refresh()
    if shared.is_on():
        with contextlib.suppress(OSError):  # the lesson continues
            _share(current)


def _save(current: Progress) -> None:
    """Replace the file in one step. If the folder is read-only, progress is not saved; the lesson continues."""
    content = {"version": 1, "exercises": {name: vars(entry) for name, entry in current.entries.items()}}
    content["predictions"] = current.predictions
    with contextlib.suppress(OSError):
        replace_json(path(), content)


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
