"""Forgets a person: `autograder forget NAME`. docs/PRIVACY.md says what is stored about people, and where.

A course forgets what was handed in, its grades and its pages, and writes the files about the class anew. A room forgets
also the sign-in, the home, shared progress, and what is in the exchange: that needs root, and a room that is closed.
"""

import contextlib
import json
import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path

from nbgrader.api import MissingEntry
from nbgrader.utils import notebook_hash
from sqlalchemy import create_engine, text

from .course import COURSE_ID, HELD, Course, CourseError, Outcome, read_json, word, write_atomically
from .duedates import FILE as RULES
from .grading.grade import list_changes
from .grading.gradebook import one_grader, open_gradebook
from .intake.people import ClassList, read_table, roster_of
from .intake.systems import SYSTEMS
from .lms.filled import MOODLE_ZIP
from .lms.lti import SENT
from .reports.report import report as write_page
from .room.exchange import SECRET, entries, lesson_in, opened
from .standing import Standing, export

STEPS = ("submitted", "autograded", "feedback", HELD)
FILLED = (MOODLE_ZIP, *(f"{system}{ending}" for system in SYSTEMS for ending in (".*", "-filled.*")))
ABOUT_ALL = ("grades.csv", "exercises.csv", "misconceptions.csv", "report.html", "nbgrader_grades.csv", ".nbgrader.log")


class _Told(Outcome):
    def gone(self, what: str) -> None:
        self.said.append(f"forgotten: {what}")

    def remove(self, path: Path, what: str) -> None:
        """Remove a file, a link or a folder, and say so; nothing happens where there is none."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.exists() or path.is_symlink():
            path.unlink()
        else:
            return
        self.gone(what)


def forget(course: Course, name: str, room: Path | None = None) -> Outcome:
    """Remove what a course, and a room if one is given, keep of a person. CourseError if they know nobody so.

    name: the student's id, as in grades.csv; in a room, whose course it is then, the name of the sign-in.
    """
    course = Course.open(room / "course") if room else course
    known = {person.id for person in Standing(course).people} if course.root.is_dir() else set()
    report, number = _Told(), _number_in(room, name) if room else None
    if name not in known and number is None and not (room and name in _read(room / "hub/people.json")):
        people = ", ".join(map(word, sorted(known)[:20]))
        raise CourseError(f"there is nobody called {word(name)}; there are: {people or 'no people'}")
    if room:
        _forget_in_room(course, room, name, number, report)
    if name in known:
        _forget_in_course(course, name, report)
    report.said.append("look through: backups, what you exported to other folders, and the files of your LMS")
    return report


def _forget_in_course(course: Course, name: str, said: _Told) -> None:
    with one_grader(course, print), open_gradebook(course) as gradebook:
        with contextlib.suppress(MissingEntry):
            gradebook.remove_student(name)
            said.gone("grades and comments in the gradebook")
        gradebook.db.commit()
        _compact(gradebook.db.get_bind())
    for step in STEPS:
        said.remove(course.root / step / name, f"{step}/{word(name)}")
    classlist = ClassList(course)
    for kept in (classlist.people, classlist.trouble):
        kept.pop(name, None)
    classlist.late = {names for names in classlist.late if names[0] != name}
    classlist.save()
    said.gone("names and numbers in class.json")
    if roster_of(course).exists():
        table = read_table(roster_of(course), "the roster")
        theirs = [person is not None and person.id == name for person in table.people()]
        table.lines[1:] = [line for line, own in zip(table.lines[1:], theirs) if not own]
        write_atomically(roster_of(course), table.content())
        if any(theirs):
            said.gone("the line in roster.csv")
    sent = course.root / SENT
    if sent.exists():
        left = {key: score for key, score in read_json(sent).items() if key.rpartition(" ")[0] != name}
        write_atomically(sent, json.dumps(left, indent=1).encode())
    for path in (path for file in (*ABOUT_ALL, *FILLED) for path in course.root.glob(file)):
        path.unlink()
    shutil.rmtree(course.root / "exports", ignore_errors=True)
    list_changes(course)
    if course.handed_in("autograded"):
        write_page(course)
        export(course)
    said.gone("the files about the class: the page and the tables are written anew, exports/ is gone")
    owner = course.root.stat()
    for path in course.root.iterdir():  # root may have written them
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    if name in course.rules().students:
        said.said.append(f"look through: {course.root / RULES} has rules for {word(name)}")


def _text(path: Path) -> str:
    """A short text of somebody else's, which may be anything; "" if it is none."""
    with contextlib.suppress(OSError), opened(path, 0) as handle:
        return os.read(handle, 1024).decode("ascii", "replace")
    return ""


def _forget_in_room(course: Course, room: Path, name: str, number: int | None, said: _Told) -> None:
    if name == "instructor":
        raise CourseError("found the instructor, to whom the course belongs; expected an attendee")
    if os.geteuid():
        raise CourseError("found an ordinary user; expected root, because a room's files belong to its people")
    if pid := _text(room / "hub/proxy.pid").strip():
        with contextlib.suppress(ProcessLookupError, ValueError):
            os.kill(int(pid), 0)
            raise CourseError(f"the room is open (process {pid}); close it first, so that nobody is signed in")
    for file in ("hub/people.json", "hub/names.json"):
        kept = _read(room / file)
        if name in kept:
            kept.remove(name) if isinstance(kept, list) else kept.pop(name)
            (room / file).write_text(json.dumps(kept, indent=1))
            said.gone(file)
    database = room / "hub/hub.sqlite"
    if (server := os.environ.get("ROOM_DATABASE")) or database.exists():
        engine = create_engine(server or f"sqlite:///{database}")
        with engine.begin() as hub:
            if engine.dialect.name == "sqlite":
                hub.execute(text("PRAGMA foreign_keys = ON"))
            hub.execute(text("DELETE FROM users WHERE name = :name"), {"name": name})
        _compact(engine)
        said.gone("the account in the hub's database")
    _forget_in_exchange(course, room / "exchange" / COURSE_ID, name, number, said)
    for path in (room / "progress" / name, room / "home" / name):
        said.remove(path, f"{path.relative_to(room).parent}/{word(path.name)}")
    _forget_user(room, name, said)
    said.said.append("look through: the hub's log, where you keep one")


def _forget_in_exchange(course: Course, exchange: Path, name: str, number: int | None, said: _Told) -> None:
    """What somebody handed in, and the pages, which are named by nbgrader's secrets beside what was handed in."""
    inbound = exchange / "inbound"
    hand_ins = [inbound / entry for entry, about in entries(inbound) if about.st_uid == number]
    folders = [(path, lesson_in(path.name, course.released)) for path in hand_ins if not path.is_symlink()]
    folders += [(course.stamp(name, lesson).parent, lesson) for who, lesson in course.handed_in() if who == name]
    for folder, lesson in folders:
        if lesson and (secret := _text(folder / SECRET)):
            page = exchange / "feedback" / f"{notebook_hash(secret=secret, notebook_id=lesson)}.html"
            said.remove(page, f"feedback on {lesson} in the exchange")
    for path in hand_ins:
        said.remove(path, f"exchange/{COURSE_ID}/inbound/{word(path.name)}")


def _forget_user(room: Path, name: str, said: _Told) -> None:
    """The user of this machine, or of the containers. Their number is not given to anybody else."""
    with contextlib.suppress(KeyError):
        if pwd.getpwnam(name).pw_dir == str(room / "home" / name):
            subprocess.run(["userdel", name], check=True, capture_output=True)
            said.gone("the user of this machine")
    passwd, own = room / "passwd", re.compile(rf"^{re.escape(name)}(?=:[^:\n]*:([^:\n]*):)", re.MULTILINE)
    if passwd.exists() and own.search(before := passwd.read_text()):
        passwd.write_text(own.sub(r"gone-\1", before))
        said.gone("the name in passwd, of the users in containers")


def _number_in(room: Path, name: str) -> int | None:
    """Somebody's user number in a room; None for a user who is not of this room."""
    home, passwd = room / "home" / name, room / "passwd"
    lines = passwd.read_text().splitlines() if passwd.exists() else []
    of_containers = [line.split(":") for line in lines if line.startswith(f"{name}:")]
    if of_containers and home.is_dir():
        return int(of_containers[0][2])
    with contextlib.suppress(KeyError):
        user = pwd.getpwnam(name)
        return user.pw_uid if user.pw_dir == str(home) else None
    return None


def _read(path: Path) -> dict | list:
    return json.loads(path.read_text()) if path.exists() else {}


def _compact(engine) -> None:
    """Have SQLite overwrite what was deleted: until then it is in the file."""
    if engine.dialect.name == "sqlite":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM"))
