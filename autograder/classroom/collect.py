"""Finds whose notebook is which assignment in a folder or a zip, and copies it to where it is graded.

Every file goes to submitted/<student>/<assignment>/ under names made here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from .course import Course, write_atomically
from .identity import Identified, answers_of, identified
from .people import ClassList, keep_roster
from .sources import CollectReport, Found, files_in, shown
from .submission import notebook_of

_MINUTES = "%Y-%m-%d %H:%M"


def collect(
    path: str | Path, course: Course, student: str = "", roster: str | Path | None = None
) -> CollectReport:
    """Copy the notebooks in the folder or zip `path` to submitted/<student>/<assignment>/ of the course.

    `student` says whose notebooks these are, where no name says it. `roster` is the class list, as CSV; the
    course keeps it. Of several notebooks of one student for one assignment the latest is taken. A new course is
    made first. CourseError when `path` is neither folder, nor zip, nor notebook, or the roster cannot be read.
    """
    report = CollectReport()
    copies: dict[tuple[str, str], list[Identified]] = defaultdict(list)
    with files_in(Path(path), course.root, report) as files:
        course.create()
        if roster:
            keep_roster(course, Path(roster))
        classlist = ClassList(course)
        for one in identified(files, answers_of(course), classlist, student, report):
            if one.problem:
                report.refuse(one.found.path, one.problem, one.student)
            else:
                copies[one.student, one.assignment].append(one)
        for (who, assignment), there in copies.items():
            latest = _latest(who, assignment, there, report)
            if latest and _store(course, who, assignment, *latest, report):
                report.collected.append((who, assignment, shown(latest[0].found.path)))
                classlist.set_late(who, assignment, latest[0].late)
    for who in {who for who, _ in copies} | set(report.trouble):
        classlist.trouble.pop(who, None)
    classlist.trouble.update(report.trouble)
    classlist.save()
    return report


def _latest(
    who: str, assignment: str, copies: list[Identified], report: CollectReport
) -> tuple[Identified, bytes] | None:
    """The latest copy that can be read, with its content as a notebook."""
    older = sorted(copies, key=lambda one: _rank(one.found))
    while older:
        latest = older.pop()
        path = latest.found.path
        try:
            content = latest.found.read()
        except (ValueError, OSError) as error:
            report.refuse(path, error, who)
            continue
        if older:
            others = ", ".join(f"{shown(o.found.path)} of {o.found.modified:{_MINUTES}}" for o in older[-3:])
            more = f" and {len(older) - 3} more" if len(older) > 3 else ""
            report.notes.append(
                f"{who} handed in {assignment} {len(older) + 1} times: took {shown(path)} of "
                f"{latest.found.modified:{_MINUTES}}, not {others}{more}"
            )
        return latest, notebook_of(content) if path.lower().endswith(".py") else content
    return None


def _rank(found: Found) -> tuple[bool, bool, datetime, int]:
    """Orders the copies of one notebook: a script, then JupyterLab's and Windows' copies, then by time and number.

    A browser or system appends the number. A copy is what its owner kept beside the notebook, even if it is newer.
    """
    name = found.path.lower()
    number = re.search(r"(?:\((\d+)\)|-(\d+))\.ipynb(?:\.txt)?$", name)
    copied = re.search(r"(?:-copy\d+| - copy(?: \(\d+\))?)\.ipynb(?:\.txt)?$", name)
    return not name.endswith(".py"), not copied, found.modified, int(number[1] or number[2]) if number else 0


def _store(
    course: Course, student: str, assignment: str, one: Identified, content: bytes, report: CollectReport
) -> bool:
    found = one.found
    target = course.notebook("submitted", student, assignment)
    if target.parent.resolve() != target.parent:
        report.refuse(found.path, f"{target.parent} leads elsewhere; not written", student)
        return False
    stamp = target.with_name("timestamp.txt")
    kept = read_timestamp(stamp)
    if target.is_file() and kept and kept > found.modified:
        report.notes.append(
            f"{student} has a later {assignment}, of {kept:{_MINUTES}}; kept it, not {shown(found.path)}"
        )
        return False
    try:
        write_atomically(target, content)
        write_atomically(stamp, f"{found.modified:%Y-%m-%d %H:%M:%S.%f} UTC\n".encode())
    except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
        report.refuse(found.path, f"{target} cannot be written: {error.strerror}", student)
        return False
    return True


def read_timestamp(path: Path) -> datetime | None:
    """The time in a timestamp.txt, None where there is none."""
    try:
        return datetime.strptime(path.read_text().strip(), "%Y-%m-%d %H:%M:%S.%f UTC").replace(tzinfo=UTC)
    except (ValueError, OSError):
        return None
