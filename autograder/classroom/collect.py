"""Finds whose notebook is which assignment in a folder or a zip, and copies it to where it is graded.

Every file goes to submitted/<student>/<assignment>/ under names made here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from ..text import visible
from .course import Course, write_atomically
from .identity import answers_of, identified
from .sources import CollectReport, Found, files_in, shown

_MINUTES = "%Y-%m-%d %H:%M"


def collect(path: str | Path, course: Course, student: str = "") -> CollectReport:
    """Copy the notebooks in the folder or zip `path` to submitted/<student>/<assignment>/ of the course.

    `student` says whose notebooks these are, where no name says it. Of several notebooks of one student for
    one assignment the latest is taken. A new course is made first. CourseError when `path` is neither
    folder, nor zip, nor notebook.
    """
    report = CollectReport()
    copies: dict[tuple[str, str], list[Found]] = defaultdict(list)
    with files_in(Path(path), course.root, report) as files:
        course.create()
        for found, who, assignment in identified(files, answers_of(course), student, report):
            copies[who, assignment].append(found)
        for (who, assignment), there in copies.items():
            latest = _latest(who, assignment, there, report)
            if latest and _store(course, who, assignment, *latest, report):
                report.collected.append((who, assignment, shown(latest[0].path)))
    return report


def _latest(
    who: str, assignment: str, copies: list[Found], report: CollectReport
) -> tuple[Found, bytes] | None:
    """The latest copy that can be read, with its content."""
    older = sorted(copies, key=_recency)
    while older:
        latest = older.pop()
        try:
            content = latest.read()
        except (ValueError, OSError) as error:
            report.not_understood.append(f"{shown(latest.path)}: {visible(error, 300)}")
            continue
        if older:
            others = ", ".join(f"{shown(o.path)} of {o.modified:{_MINUTES}}" for o in older[-3:])
            more = f" and {len(older) - 3} more" if len(older) > 3 else ""
            report.notes.append(
                f"{who} handed in {assignment} {len(older) + 1} times: took {shown(latest.path)} of "
                f"{latest.modified:{_MINUTES}}, not {others}{more}"
            )
        return latest, content
    return None


def _recency(found: Found) -> tuple[datetime, int]:
    """Orders the copies of one notebook: by time, then by the number a browser or system appended."""
    number = re.search(r"(?:\((\d+)\)|-(\d+))\.ipynb$", found.path)
    return found.modified, int(number[1] or number[2]) if number else 0


def _store(
    course: Course, student: str, assignment: str, found: Found, content: bytes, report: CollectReport
) -> bool:
    target = course.notebook("submitted", student, assignment)
    if target.parent.resolve() != target.parent:
        report.not_understood.append(f"{shown(found.path)}: {target.parent} leads elsewhere; not written")
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
        report.not_understood.append(f"{shown(found.path)}: {target} cannot be written: {error.strerror}")
        return False
    return True


def read_timestamp(path: Path) -> datetime | None:
    """The time in a timestamp.txt, None where there is none."""
    try:
        return datetime.strptime(path.read_text().strip(), "%Y-%m-%d %H:%M:%S.%f UTC").replace(tzinfo=UTC)
    except (ValueError, OSError):
        return None
