"""nbgrader's exchange for a class in a room: every lesson released, collected by owner, every page given back.

    course/release/ ──release──▶ exchange/…/outbound ──fetch──▶ attendee
    course/submitted/ ◀──collect── exchange/…/inbound ◀──submit── attendee
    course/feedback/ ──give back──▶ exchange/…/feedback ──fetch──▶ attendee
"""

import contextlib
import copy
import json
import os
import pwd
import shutil
import stat
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.exchange.default import ExchangeCollect
from nbgrader.utils import notebook_hash

from ...text import visible
from ..course import COURSE_ID, Course, CourseError, Outcome, read_timestamp, word, write_atomically
from ..grading.judging import is_stale
from ..intake.people import ClassList

SECRET = "submission_secret.txt"  # nbgrader's: it names the page that belongs to a hand-in
MAX_HAND_IN, MAX_SECRET = 16 << 20, 1024  # bytes that are read of a notebook, and of nbgrader's secret


class CollectByOwner(ExchangeCollect):
    """nbgrader's collect, as its command and formgrader call it, by `collect_lesson`."""

    def init_src(self) -> None:
        self.inbound = Path(self.root, self.coursedir.course_id, "inbound")
        if not self.inbound.is_dir():
            self.fail(f"Course not found: {self.inbound}")

    def copy_files(self) -> None:
        course = Course.open(self.coursedir.root, self.coursedir.db_url)
        for problem in collect_lesson(course, self.inbound.parent, self.coursedir.assignment_id):
            self.log.warning("%s", problem)


def collect_lesson(course: Course, exchange: Path, lesson: str) -> list[str]:
    """Bring each attendee's latest hand-in of a lesson to submitted/. A line for each one that could not be read.

    Attendees can put anything there, and change it meanwhile. So whose a hand-in is, and when it came, is what the
    system says of its files, whatever their names say; and nothing of one attendee's can stop another's.
    """
    classlist, problems, inbound = ClassList(course), [], exchange / "inbound"
    hand_ins = defaultdict(list)
    for name, about in entries(inbound):
        if lesson_in(name, [lesson]):
            hand_ins[about.st_uid].append((about.st_ctime_ns, name))
    with opened(inbound, os.O_DIRECTORY) as folder:
        for owner, there in sorted(hand_ins.items()):
            student, refused = f"user-{owner}", []
            with contextlib.suppress(KeyError):
                student = pwd.getpwuid(owner).pw_name
            for _, name in sorted(there, reverse=True):  # an older one counts where the latest cannot be read
                try:
                    _store(course, student, lesson, *_read(folder, name, owner, lesson))
                    break
                except (OSError, ValueError) as error:
                    reason = error.strerror if isinstance(error, OSError) else error
                    refused.append(f"{word(student)} {word(lesson)}: not collected: {word(name)}: {reason}")
            others = [line for line in classlist.trouble.pop(student, []) if f" {lesson}: not collected: " not in line]
            if others + refused:
                classlist.trouble[student] = others + refused
            problems += refused
    classlist.save()
    return problems


def entries(inbound: Path) -> Iterator[tuple[str, os.stat_result]]:
    """What is in the folder for hand-ins: its name, and what the system says of it. No link is followed."""
    with contextlib.suppress(OSError), os.scandir(inbound) as there:
        for entry in there:
            with contextlib.suppress(OSError):  # gone meanwhile
                yield entry.name, entry.stat(follow_symlinks=False)


def lesson_in(name: str, lessons: Collection[str]) -> str | None:
    """The lesson in nbgrader's name of a hand-in, who+lesson+when+random; only the lesson counts."""
    return next((part for part in name.split("+")[1:] if part in lessons), None)


@contextlib.contextmanager
def opened(path: Path | str, kind: int, folder: int | None = None) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | kind, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


def _read(inbound: int, name: str, owner: int, lesson: str) -> tuple[bytes, bytes, datetime]:
    """The notebook in a hand-in, nbgrader's secret ("" without one), and when they came, by the server's clock.

    Only files of these names, of the owner of the folder, and of a bounded size are read. The time is that of the
    last change, which nobody can set back. Raises OSError and ValueError.
    """
    with opened(name, os.O_DIRECTORY, inbound) as folder:
        about = os.fstat(folder)
        if about.st_uid != owner:
            raise ValueError("it is another user's now")
        try:
            notebook, changed = _file(folder, f"{lesson}.ipynb", owner, MAX_HAND_IN)
        except FileNotFoundError:
            raise ValueError(f"there is no {lesson}.ipynb in it") from None
        secret = b""
        with contextlib.suppress(FileNotFoundError):
            secret, _ = _file(folder, SECRET, owner, MAX_SECRET)
    return notebook, secret, datetime.fromtimestamp(max(about.st_ctime, changed), UTC)


def _file(folder: int, name: str, owner: int, most: int) -> tuple[bytes, float]:
    with opened(name, 0, folder) as handle:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != owner:
            raise ValueError(f"{name} is no file of this user's")
        with os.fdopen(os.dup(handle), "rb") as file:
            content = file.read(most + 1) if about.st_size <= most else b""
        if max(about.st_size, len(content)) > most:
            raise ValueError(f"{name} has more than {most:,} bytes; its outputs can be cleared")
        return content, about.st_ctime


def _store(course: Course, student: str, lesson: str, notebook: bytes, secret: bytes, came: datetime) -> None:
    """Put a hand-in into submitted/, whole or not at all, unless it or a later one is there."""
    stamp = course.stamp(student, lesson)
    target, before = stamp.parent, read_timestamp(stamp)
    files = {f"{lesson}.ipynb": notebook, SECRET: secret}
    same = all((path.read_bytes() if (path := target / name).is_file() else b"") == files[name] for name in files)
    if same or (before and before >= came):  # the same may look newer: a backup that was put back has new times
        return
    part = target.with_name(f".{lesson}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for name in filter(files.get, files):
        (part / name).write_bytes(files[name])
    (part / stamp.name).write_text(f"{came:%Y-%m-%d %H:%M:%S.%f} UTC")
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)


def exchange(course: Course, root: str | Path, step: str, only: Sequence[str] = ()) -> Outcome:
    """One step for every lesson, or for those in `only`: "release", "collect" or "give-back".

    `root` is the exchange's folder. CourseError when there is no exchange, and for a lesson that the course has not.
    """
    root = Path(root)
    if not root.is_dir():
        raise CourseError(f"{root}: there is no exchange; give the folder of the room, --exchange ROOM/exchange")
    course.create()
    here, report, done = root / COURSE_ID, Outcome(), 0
    # What nbgrader's first release would make. In a room it is there before anybody comes in.
    for name, mode in (("", 0o755), ("outbound", 0o755), ("inbound", 0o2733), ("feedback", 0o711)):
        if not (path := here / name).is_dir():
            path.mkdir()
            path.chmod(mode)
    handed_in = {lesson_in(name, course.released) for name, _ in entries(here / "inbound")}
    steps = {
        "release": (_release, course.released),
        "collect": (collect_lesson, sorted(filter(None, handed_in))),
        "give-back": (_give_back, sorted({a for _, a in course.handed_in("feedback")})),
    }
    if unknown := set(only) - set(course.released):
        raise CourseError(f"there is no lesson {min(unknown)!r}; there are: {', '.join(course.released)}")
    work, assignments = steps[step]
    for assignment in (name for name in assignments if not only or name in only):
        try:
            problems = work(course, here, assignment)
        except OSError as error:
            problems = [f"{step} {word(assignment)}: {visible(error, 300)}"]
        report.problems += problems
        done += not problems
    if step == "collect" and None in handed_in:
        report.notes.append(f"{here / 'inbound'}: something there is no hand-in of a lesson; it is left out")
    report.said.append(f"{step}: {done} lesson{'' if done == 1 else 's'}")
    return report


def _release(course: Course, exchange: Path, lesson: str) -> list[str]:
    """Let attendees fetch a lesson, with the time when it is due; the lesson of today in the place of an older one."""
    notebook, due = copy.deepcopy(course.released[lesson]), course.rules().due(lesson)
    first = next((cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"), None)
    if due and first:
        first["source"] += f"\n\n**Hand in by {due.astimezone():%d %B %Y, %H:%M %Z}.**"
    content = json.dumps(notebook, indent=1, ensure_ascii=False).encode()
    folder, part = exchange / "outbound" / lesson, exchange / "outbound" / f".{lesson}.part"
    there = folder / f"{lesson}.ipynb"
    if not there.is_file() or there.read_bytes() != content:
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(course.root / "release" / lesson, part)
        write_atomically(part / there.name, content)
        for path in (part, *part.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    return []


def _give_back(course: Course, exchange: Path, lesson: str) -> list[str]:
    """Put each page where only its owner finds it; a line for each that is older than what was handed in."""
    problems = []
    for student in (student for student, assignment in course.handed_in("feedback") if assignment == lesson):
        page = course.notebook("feedback", student, lesson, ".html")
        secret = course.stamp(student, lesson).with_name(SECRET)
        if is_stale(course, student, lesson):
            problems.append(f"{word(student)} {word(lesson)}: not given back, handed in anew: grade again")
        elif page.is_file() and secret.is_file():  # what did not come through the exchange cannot go back through it
            name = notebook_hash(secret=secret.read_text(errors="replace"), notebook_id=lesson)
            write_atomically(exchange / "feedback" / f"{name}.html", page.read_bytes())
    return problems


def how_far(room: Path, lessons: list[str]) -> dict[str, dict[str, int]]:
    """lesson -> whether it is released, and for how many attendees each step is done, by names of folders only."""
    course, exchange = Course.open(room / "course"), room / "exchange" / COURSE_ID
    folders = {"collected": "submitted", "graded": "autograded", "feedback": "feedback"}
    steps = {"handed_in": {(about.st_uid, lesson_in(name, lessons)) for name, about in entries(exchange / "inbound")}}
    steps |= {step: set(course.handed_in(folder)) for step, folder in folders.items()}
    return {
        lesson: {"released": (exchange / "outbound" / lesson).is_dir()}
        | {step: sum(name == lesson for _, name in done) for step, done in steps.items()}
        for lesson in lessons
    }
