"""nbgrader's exchange for a class in a room: every lesson released, collected by owner, every page given back.

    course/release/ ──release──▶ exchange/…/outbound ──fetch──▶ attendee
    course/submitted/ ◀──collect── exchange/…/inbound ◀──submit── attendee
    course/feedback/ ──give back──▶ exchange/…/feedback ──fetch──▶ attendee
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeCollect
from traitlets.config import Config

from ..text import visible
from . import interrupt
from .course import COURSE_ID, Course, CourseError, configure, word
from .gradebook import open_gradebook
from .standing import standing

SECRETS = ("timestamp.txt", "submission_secret.txt")  # which hand-in a page belongs to; nbgrader asks for both


class CollectByOwner(ExchangeCollect):
    """nbgrader's collect, but a hand-in belongs to the user who wrote it, whatever name it bears.

    nbgrader warns of a false name, and takes it; and it copies what links lead to, with the instructor's eyes.
    """

    def _path_to_record(self, path: str) -> dict:
        record = super()._path_to_record(path)
        number = os.lstat(path).st_uid
        try:
            record["username"] = pwd.getpwuid(number).pw_name
        except KeyError:
            record["username"] = f"user-{number}"
        return record

    def do_copy(self, src: str, dest: str, log=None) -> None:
        if os.path.islink(src):
            self.log.warning("%s is a link; not collected", src)
            return
        # Under another name until it is whole: nbgrader takes what is there for collected, also half of it.
        part = os.path.join(os.path.dirname(dest), f".{os.path.basename(dest)}.part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(src, part, symlinks=True)
        for folder, folders, files in os.walk(part):
            for name in [*folders, *files]:
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    os.unlink(path)
                    self.log.warning("%s: %s is a link; not collected", src, name)
        os.rename(part, dest)


@dataclass
class ExchangeReport:
    """What one step did with each lesson: done, or a reason."""

    step: str
    done: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        return int(bool(self.problems))

    def print(self, out: Callable[[str], None] = print) -> None:
        for problem in self.problems:
            out(problem)
        out(f"{self.step}: {len(self.done)} lesson{'' if len(self.done) == 1 else 's'}")


def exchange(course: Course, root: str | Path, step: str, only: Sequence[str] = ()) -> ExchangeReport:
    """One step for every lesson, or for those in `only`: "release", "collect" or "give-back".

    `root` is the exchange's folder. CourseError when there is no exchange, and for a lesson that the course has not.
    """
    root = Path(root)
    if not root.is_dir():
        raise CourseError(f"{root}: there is no exchange; give the folder of the room, --exchange ROOM/exchange")
    course.create()
    with open_gradebook(course):  # made now, where `alembic` is found; nbgrader's collect asks it for due dates
        pass
    api = _api(course, root)
    report = ExchangeReport(step)
    steps = {
        "release": (api.release_assignment, course.released),
        "collect": (api.collect, sorted(path.name for path in root.glob(f"{COURSE_ID}/outbound/*"))),
        "give-back": (api.release_feedback, sorted({a for _, a in course.handed_in("feedback")})),
    }
    if unknown := set(only) - set(course.released):
        raise CourseError(f"there is no lesson {min(unknown)!r}; there are: {', '.join(course.released)}")
    work, assignments = steps[step]
    assignments = [name for name in assignments if not only or name in only]
    for assignment in assignments:
        if step == "give-back":
            api.coursedir.student_id_exclude = ",".join(_cannot_get(course, assignment, report))
        result = work(assignment)
        interrupt.check()  # nbgrader takes Ctrl-C for an error of one lesson
        if result["success"]:
            report.done.append(assignment)
        else:
            lines = (result.get("error") or result.get("log") or "no reason").strip().splitlines()
            report.problems.append(f"{step} {word(assignment)}: {visible(lines[-1], 300)}")
    return report


def _api(course: Course, root: Path) -> NbGraderAPI:
    config = Config()
    configure(config)
    config.merge(course.config)
    config.CourseDirectory.root = str(course.root)
    config.CourseDirectory.course_id = COURSE_ID
    config.CourseDirectory.db_url = course.db_url
    config.Exchange.root = str(root)
    config.ExchangeFactory.collect = CollectByOwner
    return NbGraderAPI(CourseDirectory(config=config), config=config)


def _cannot_get(course: Course, assignment: str, report: ExchangeReport) -> Iterator[str]:
    """Students whose page of an assignment stays here. The others' pages get the secret of their hand-in."""
    stale = standing(course).stale
    for student, _ in filter(lambda one: one[1] == assignment, course.handed_in("feedback")):
        page = course.notebook("feedback", student, assignment).parent
        handed_in = course.notebook("submitted", student, assignment).parent
        if (student, assignment) in stale:
            report.problems.append(f"{word(student)} {word(assignment)}: not given back, handed in anew: grade again")
        elif all((handed_in / name).is_file() for name in SECRETS):
            for name in SECRETS:
                shutil.copyfile(handed_in / name, page / name)
            continue
        yield student  # what did not come through the exchange cannot go back through it


@dataclass(frozen=True)
class HowFar:
    """How far a lesson is: whether it is released, and for how many attendees each step is done."""

    released: bool
    handed_in: int
    collected: int
    graded: int
    feedback: int


def how_far(room: Path, lessons: list[str]) -> dict[str, HowFar]:
    """lesson -> how far it is. Only names of folders are read."""
    course, exchange = Course.open(room / "course"), room / "exchange" / COURSE_ID
    steps = {step: [name for _, name in course.handed_in(step)] for step in ("submitted", "autograded", "feedback")}
    inbound = _handed_in(exchange / "inbound")
    return {
        lesson: HowFar(
            (exchange / "outbound" / lesson).is_dir(),
            len({owner for owner, name in inbound if name == lesson}),
            *(names.count(lesson) for names in steps.values()),
        )
        for lesson in lessons
    }


def _handed_in(inbound: Path) -> set[tuple[int, str]]:
    """(owner's number, lesson) of what was handed in. nbgrader's names: who+lesson+when+secret, and a who can lie."""
    try:
        entries = [(entry, entry.name.split("+")) for entry in os.scandir(inbound)]
        return {(entry.stat(follow_symlinks=False).st_uid, parts[1]) for entry, parts in entries if len(parts) > 2}
    except OSError:
        return set()
