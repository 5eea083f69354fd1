"""The course directory: nbgrader's folders, what is released in them, and files that are written whole or not at all.

    source/ release/ submitted/<student>/ autograded/<student>/ feedback/<student>/ gradebook.db

One assignment per notebook: <step>/<student>/<assignment>/<assignment>.ipynb.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Self

from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from ..text import visible
from . import duedates
from .submission import Check, checks_in

COURSE_ID = "triton-workshop"
LESSONS = Path(__file__).resolve().parents[2] / "notebooks"
PLUGINS = "autograder.classroom.grading.nbgrader_plugins"
HELD = "held"  # a step beside autograded/: what regrading would change
TEMPLATES = Path(__file__).with_name("templates")
NEW = "nbgrader_config.py", duedates.FILE  # in templates/: what a new course has beside its lessons


class CourseError(Exception):
    """The call itself was wrong. The message is one line: what was found, what was expected, what to do."""


def configure(c: Config) -> None:
    """nbgrader's configuration for a course: its formats and tools, the judge's verdicts."""
    c.CourseDirectory.course_id = COURSE_ID
    c.GenerateAssignment.preprocessors = [f"{PLUGINS}.MakeRelease", "nbgrader.preprocessors.SaveCells"]
    c.Autograde.exporter_class = f"{PLUGINS}.ReleasedExporter"
    c.Autograde.sanitize_preprocessors = []
    c.Autograde.autograde_preprocessors = [f"{PLUGINS}.TrustedVerdict"]
    c.GenerateFeedback.exporter_class = f"{PLUGINS}.FeedbackExporter"
    c.GenerateFeedback.preprocessors = []
    c.ExportPlugin.to = "nbgrader_grades.csv"  # grades.csv is `autograder export`'s


@dataclass
class Outcome:
    """What a command did, in lines, and notes; what it could not do, each after `blame`; the `files` that it wrote."""

    said: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)
    blame: str = ""

    @property
    def status(self) -> int:
        """The exit status: 0, or 1 if there are problems."""
        return int(bool(self.problems))

    def print(self, out: Callable[[str], None] = print) -> None:
        for line in (*(f"note: {n}" for n in self.notes), *(f"{self.blame}{p}" for p in self.problems), *self.said):
            out(line)


@dataclass(frozen=True)
class Course:
    """A course directory and the URL of its gradebook."""

    root: Path
    db_url: str
    config: Config = field(repr=False, compare=False)

    @classmethod
    def open(cls, root: str | Path = "course", db: str | None = None) -> Self:
        """The course in `root`; it may be new. Its gradebook: `db`, what its configuration names, or gradebook.db."""
        root = Path(root).resolve()
        if root.exists() and not root.is_dir():
            raise CourseError(f"{root}: is a file; a course is a folder")
        config = Config()
        if (root / "nbgrader_config.py").exists():
            config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
        url = db or config.CourseDirectory.get("db_url")
        if not url and "?" in str(root):
            raise CourseError(f"{root}: its ? would end the path in the gradebook's URL; rename it, or give --db")
        return cls(root, url or f"sqlite:///{root / 'gradebook.db'}", config)

    def create(self) -> None:
        """Make what a new course has: the lessons of solutions/, nbgrader's configuration, and an empty course.toml."""
        if not any(self.root.glob("release/*/*.ipynb")):
            self.write_lessons()
        for name in NEW:
            if not (self.root / name).exists():
                write_atomically(self.root / name, (TEMPLATES / name).read_bytes())

    def write_lessons(self) -> None:
        """Write source/ and release/ from solutions/, also over older ones; all are built before one is moved."""
        from autograder.lessons import BuildError, write_course

        self.root.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.TemporaryDirectory(dir=self.root, prefix=".lessons-") as built:
                write_course(Path(built))
                for step in ("source", "release"):  # what only the older ones have stays
                    shutil.copytree(f"{built}/{step}", self.root / step, dirs_exist_ok=True, copy_function=os.replace)
        except BuildError as error:
            with contextlib.suppress(OSError):
                self.root.rmdir()  # if it is empty
            raise CourseError(f"the lessons of the course cannot be built: {error}") from None

    def outdated(self) -> list[str]:
        """The released lessons that differ from notebooks/; [] in a course that has not even half of these."""
        lessons = {path: self.root / "release" / path.stem / path.name for path in sorted(LESSONS.glob("*.ipynb"))}
        if 2 * sum(there.is_file() for there in lessons.values()) < len(lessons):
            return []
        built = {there: path.read_bytes().replace(b"../assets/", b"assets/") for path, there in lessons.items()}
        return [there.stem for there, new in built.items() if not there.is_file() or there.read_bytes() != new]

    def rules(self) -> duedates.Rules:
        """What course.toml says about due dates, penalties and totals. Raises CourseError."""
        try:
            return duedates.Rules(self.root, self.released)
        except (OSError, ValueError) as error:
            raise CourseError(f"{self.root / duedates.FILE}: {visible(error, 300)}") from None

    def points(self, assignment: str) -> float:
        """The points of a released assignment; 0 for another one."""
        return float(sum(check.points for check in self.checks(assignment)))

    def checks(self, assignment: str) -> list[Check]:
        """What is graded in a released assignment; [] for another one."""
        return checks_in(self.released.get(assignment, {"cells": []}))

    @cached_property
    def released(self) -> dict[str, dict]:
        """assignment -> the notebook that students got, as plain JSON."""
        notebooks = {}
        for path in sorted(self.root.glob("release/*/*.ipynb")):
            if path.parent.name == path.stem:
                try:
                    notebooks[path.stem] = notebook = json.loads(path.read_bytes())
                    for cell in notebook["cells"]:
                        cell["source"] = "".join(cell["source"])  # on disk it is a list of lines
                except (ValueError, LookupError, TypeError):
                    raise CourseError(f"{path}: is not a notebook; release it again") from None
        if not notebooks:
            raise CourseError(f"{self.root}: is no course (no release/ in it); `autograder collect` makes one")
        return notebooks

    def notebook(self, step: str, student: str, assignment: str, ending: str = ".ipynb") -> Path:
        """Where a student's notebook (or page) of an assignment is in a step of the way."""
        return self.root / step / student / assignment / f"{assignment}{ending}"

    def stamp(self, student: str, assignment: str) -> Path:
        """nbgrader's file that says when something was handed in. It is not there where nobody knows."""
        return self.notebook("submitted", student, assignment).with_name("timestamp.txt")

    def handed_in(self, step: str = "submitted") -> list[tuple[str, str]]:
        """The (student, assignment) folders of a step, sorted; hidden ones and links are not looked at."""
        there = (self.root / step).glob("[!.]*/[!.]*")
        folders = (path for path in there if path.is_dir() and not (path.is_symlink() or path.parent.is_symlink()))
        return sorted((path.parent.name, path.name) for path in folders)


def update(course: Course) -> Outcome:
    """Write source/ and release/ of a course anew. Grades stay until the next grading. Raises CourseError."""
    outdated = course.outdated()
    course.create()
    course.write_lessons()
    said = [f"{', '.join(outdated) or 'no lesson'}: brought into release/"]
    next_step = "`autograder grade` judges what its new exercises and points concern, and shows other points first"
    return Outcome(said + [next_step] * bool(outdated))


def word(name: object, limit: int = 80) -> str:
    """A name for a line of text."""
    return visible(name, limit).replace("\n", "⟨U+000A⟩")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, finds the old one or the new one whole.

    Not workshop/shared.py, which does the same: to import anything of `workshop` costs the import of torch.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None:  # a full disk does not say where it is
            error.filename = str(path)
        raise


def stamped_time(text: str) -> datetime:
    """The time in nbgrader's timestamp.txt. ValueError if it is none, or has no zone, or one that is a mere name."""
    time = datetime.fromisoformat(re.sub(r" UTC$", "+00:00", text.strip()))
    if time.tzinfo is None:
        raise ValueError("it has no time zone")
    return time.astimezone(UTC)


def read_timestamp(path: Path) -> datetime | None:
    """The time in a timestamp.txt or collected.txt, None if there is none."""
    try:
        return stamped_time(path.read_text())
    except (ValueError, OverflowError, OSError):
        return None


def read_json(path: Path) -> dict:
    """A JSON object that the course keeps; {} if there is none."""
    try:
        kept = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def file_hash(path: Path) -> str:
    """Says whether a submitted file is the same; "" if there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def hash_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("utf-8", "replace")).hexdigest()
