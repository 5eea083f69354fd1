"""Points earned. They are kept in one file of the course; who sits in a room can let the instructor see them."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from workshop import shared
from workshop.advice import did_you_mean
from workshop.notebook import Live, page
from workshop.syllabus import LESSONS, QUESTIONS, SYLLABUS, Lesson, titled

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
    """Every exercise's entry, in the course's order. Shows itself as a line for each lesson.

    lesson: the one whose exercises are shown, too; without it, that of this notebook, or of the next exercise.
    """

    entries: dict[str, Entry] = field(default_factory=dict)
    predictions: dict[str, str] = field(default_factory=dict)  # the first choice in each question
    lesson: str = ""

    def entry(self, name: str) -> Entry:
        return self.entries.get(name, Entry())

    @property
    def score(self) -> float:
        """What has been earned, without the stretch exercises."""
        return sum(self.of_lesson(notebook)[0] for notebook in LESSONS)

    @property
    def points(self) -> float:
        """What the course can give, without the stretch exercises."""
        return sum(lesson.points for lesson in SYLLABUS.values() if not lesson.stretch)

    @property
    def at_hand(self) -> str:
        """The lesson whose exercises are shown; empty if all are passed and none is asked for."""
        following = self.next()
        return self.lesson or (_shown[-1].notebook if _shown else following.notebook if following else "")

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

    def foreseen(self) -> str:
        """How many predictions were right, as a sentence. It is a score of its own, and part of no grade."""
        kept = {name: choice for name, choice in self.predictions.items() if name in QUESTIONS}
        good = sum(QUESTIONS[name].foresaw(choice) for name, choice in kept.items())
        return f"Predictions: {good} of {len(kept)} right; no grade depends on them." if kept else ""

    def of_lesson(self, notebook: str) -> tuple[float, int]:
        """(points earned, points to earn) of a lesson, without stretch exercises."""
        own = [name for name in LESSONS[notebook] if not SYLLABUS[name].stretch]
        return sum(self.entry(name).score for name in own), sum(SYLLABUS[name].points for name in own)

    def lessons(self) -> list[tuple[str, float, int]]:
        """(notebook, points earned, points to earn) of each lesson, without stretch exercises."""
        return [(notebook, *self.of_lesson(notebook)) for notebook in LESSONS]

    def exercises(self, notebook: str) -> Iterator[tuple[str, str, str, str]]:
        """(mark, state, name, points) of each exercise of a lesson, as they are shown."""
        for lesson in map(SYLLABUS.get, LESSONS.get(notebook, ())):
            entry = self.entry(lesson.name)
            state = "passed" if entry.passed else "started" if entry.checks or entry.hints else "open"
            label = f"{lesson.name} (stretch)" if lesson.stretch else lesson.name
            yield MARKS[state], state, label, f"{entry.score:g} / {lesson.points}"

    def welcome(self, notebook: str) -> str:
        """What has been earned in a lesson and what is next; empty if nothing was tried in it."""
        own = LESSONS.get(notebook, [])
        if not any(self.entry(name).checks for name in own):
            return ""
        earned, points = self.of_lesson(notebook)
        following = self.next(own[-1])
        then = f"next is {following.name} in {following.notebook}" if following else "every exercise is passed"
        if waiting := [name for name in own if not self.entry(name).passed]:
            then = f"next is {waiting[0]}"
        return f"Welcome back: {earned:g} of {points} points in this lesson, {then}."

    def headline(self) -> str:
        following = self.next()
        then = f"Next: {following.name} in {following.notebook}." if following else "Every exercise is passed."
        stretch = sum(self.entry(name).score for name, lesson in SYLLABUS.items() if lesson.stretch)
        more = f", and {stretch:g} from stretch exercises" if stretch else ""
        return f"{self.score:g} of {self.points} points{more}. {then}"

    def lines(self, here: str, unfolded: str = "") -> list[str]:
        """A line for each lesson, `here` marked, and one for each exercise of the unfolded one."""
        found = []
        for notebook, earned, points in self.lessons():
            found.append(f"{'▶' if notebook == here else ' '} {notebook:<38} {earned:g} of {points}")
            rows = self.exercises(notebook) if notebook == unfolded else ()
            found += [f"    {mark} {label:<34} {score}" for mark, _, label, score in rows]
        return found

    def about(self) -> list[str]:
        """What is said below the points."""
        done = "" if self.next() else "A page to show, and what to build next: `workshop progress --page mine.html`."
        sharing = shared.told() if shared.folder() else ""
        return [words for words in (done, self.foreseen(), f"Your progress is kept in {path()}.", sharing) if words]

    def __repr__(self) -> str:
        return "\n".join([self.headline(), "", *self.lines(self.at_hand, self.at_hand), "", *self.about()])

    def _repr_html_(self) -> str:
        return page("progress.html", progress=self)


class Strip(Live):
    """Where you are: the lessons in a row, `notebook` among them marked, with the points earned so far.

    A link leads to each of the others. What a notebook shows of it changes with the progress file.
    """

    def __init__(self, notebook: str):
        self.notebook, self.greeting = notebook, progress().welcome(notebook)

    def __repr__(self) -> str:
        return "\n".join(filter(None, [*progress().lines(self.notebook), self.greeting]))

    def _repr_html_(self) -> str:
        lessons = [(notebook, *titled(notebook), *points) for notebook, *points in progress().lessons()]
        return page("strip.html", lessons=lessons, here=self.notebook, greeting=self.greeting)

    def _ipython_display_(self) -> None:
        super()._ipython_display_()
        _shown[:] = [self]


here = Strip  # what a lesson calls it
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


def progress(lesson: str = "") -> Progress:
    """What has been earned so far, with the exercises of `lesson`. A file that cannot be read: nothing is earned.

    Raises ValueError for an unknown lesson.
    """
    if lesson and lesson not in LESSONS:
        raise ValueError(f"there is no lesson {lesson!r}. {did_you_mean(lesson, LESSONS)}")
    try:
        stored = json.loads(path().read_text(encoding="utf-8"))
        exercises = stored["exercises"].items()
        said = stored.get("predictions") or {}
        predictions = {str(name): choice for name, choice in said.items() if isinstance(choice, str)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Progress(lesson=lesson)
    # What is missing in an entry, unknown or of another type is left out.
    kinds = {name: (int, float) if type(empty) is int else type(empty) for name, empty in vars(Entry()).items()}
    entries = {
        name: Entry(**{key: values[key] for key, kind in kinds.items() if isinstance(values.get(key), kind)})
        for name, values in exercises
        if isinstance(values, dict)
    }
    return Progress(entries, predictions, lesson)


def write_page(path: str | Path) -> Path:
    """Write a page to show: what has been passed so far, and projects to go on with. Returns its whole path.

    It is one HTML file that needs no other. Raises OSError.
    """
    current, file = progress(), Path(path).absolute()
    passed = [lesson for lesson in SYLLABUS.values() if current.entry(lesson.name).passed]
    last = max((current.entry(lesson.name).last[:10] for lesson in passed), default="")
    content = page("finish.html", passed=passed, exercises=len(SYLLABUS), last=last, headline=current.headline())
    file.write_text(content, encoding="utf-8")
    return file


def share_progress(choice: str = "") -> shared.Told:
    """Let the instructor of the room see your progress ("on"), or no longer ("off"); without a choice: say which it is.

    ValueError for another choice, and for "on" outside a room.
    """
    if choice not in ("", "on", "off"):
        raise ValueError(f"share_progress({choice!r}): expected 'on' or 'off'")
    if choice == "on" and shared.folder() is None:
        raise ValueError("this is no room: there is no instructor who could see your progress")
    if choice == "on":
        shared.write(progress().entries)
    elif choice == "off" and (folder := shared.folder()):
        (folder / shared.FILE).unlink(missing_ok=True)
    return shared.told()


def record(exercise: str, score: float, points: float, passed: bool | None = None) -> Progress:
    """Note one check of an exercise: points earned out of points possible. The best score is kept."""
    passed = score >= points if passed is None else passed
    with _changing(exercise) as (current, entry):
        entry.score, entry.points = max(entry.score, score), points
        entry.passed = entry.passed or passed
        entry.checks += 1
        entry.failed += not passed
    return current


def record_hint(exercise: str) -> None:
    """Note that one more hint of an exercise was opened."""
    with _changing(exercise) as (_, entry):
        entry.hints += 1


def record_prediction(question: str, choice: str) -> None:
    """Keep the first choice that was made in a question."""
    current = progress()
    current.predictions.setdefault(question, choice)
    _save(current)


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
            shared.write(current.entries)


def _save(current: Progress) -> None:
    """Replace the file in one step. If the folder is read-only, progress is not saved; the lesson continues."""
    exercises = {name: vars(entry) for name, entry in current.entries.items()}
    with contextlib.suppress(OSError):
        shared.replace_json(path(), {"version": 1, "exercises": exercises, "predictions": current.predictions})
