"""Finds whose notebook is which assignment, and copies it to submitted/<student>/<assignment>/ under our names."""

import re
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path

from ..course import Course, read_timestamp, write_atomically
from ..submission import notebook_of
from .identity import Identified, identified
from .people import ClassList, read_roster, roster_of
from .sources import CollectReport, files_in, shown

_MINUTES = "%Y-%m-%d %H:%M"
_AT_ONCE = timedelta(minutes=5)  # files of several students that are closer together were copied, not handed in


def collect(path: str | Path, course: Course, student: str = "", roster: str | Path | None = None) -> CollectReport:
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
            read_roster(Path(roster))  # one that cannot be read does not replace the one that is there
            write_atomically(roster_of(course), Path(roster).read_bytes())
        classlist = ClassList(course)
        for one in identified(files, course, classlist, student, report):
            if one.problem:
                report.refuse(one.path, one.problem, *filter(None, (one.student, *one.perhaps)))
            else:
                copies[one.student, one.assignment].append(one)
        timeless = {shown(one.path) for there in copies.values() for one in there if not one.timed}
        rules = course.rules()
        _doubt_times(copies, any(map(rules.due, course.released)), report)
        for (who, assignment), there in copies.items():
            latest = _latest(who, assignment, there, course, report)
            if latest and _store(course, who, assignment, *latest, report):
                report.collected.append((who, assignment, shown(latest[0].path)))
                classlist.late -= {(who, assignment)}
                classlist.late |= {(who, assignment)} if latest[0].named.late else set()
    unknown = sum(
        path in timeless and bool(rules.due(a)) and not rules.handed_in(who, a) and not course.stamp(who, a).exists()
        for who, a, path in report.collected
    )
    if unknown:
        what = "came without a time (the zips of Moodle and Canvas have none), so nobody is late by it"
        how = "course.toml can say when something was handed in, and for Moodle its grading worksheet as --roster"
        report.notes.append(f"{unknown} notebooks {what}; {how}")
    if others := course.outdated():
        how = "than the lessons here; `autograder update` brings these in"
        report.notes.append(f"release/ has another {', '.join(others)} {how}")
    for who in {who for who, _ in copies} | set(report.trouble):
        classlist.trouble.pop(who, None)
    classlist.trouble.update(report.trouble)
    classlist.save()
    return report


def _doubt_times(copies: dict[tuple[str, str], list[Identified]], matters: bool, report: CollectReport) -> None:
    """Take times of files for the time of a copy where three students' files or more are of the same minutes."""
    alone = [one for there in copies.values() for one in there if one.timed and not one.named.time]
    times = [one.modified for one in alone]
    if len({one.student for one in alone}) >= 3 and max(times) - min(times) < _AT_ONCE:
        for one in alone:
            one.timed = False
        if matters:
            what = f"all files are of {min(times):{_MINUTES}}: taken for the time of a copy, so nobody is late by it"
            report.notes.append(f"{what}; course.toml can say when something was handed in")


def _latest(
    who: str, assignment: str, copies: list[Identified], course: Course, report: CollectReport
) -> tuple[Identified, bytes] | None:
    """The latest copy that can be read, with its content as a notebook."""
    older = sorted(copies, key=_rank)
    while older:
        latest = older.pop()
        path = latest.path
        try:
            content = latest.read()
        except (ValueError, OSError) as error:
            report.refuse(path, error, who)
            continue
        if older:
            others = ", ".join(f"{shown(o.path)} of {o.modified:{_MINUTES}}" for o in older[-3:])
            more = f" and {len(older) - 3} more" if len(older) > 3 else ""
            took = f"{shown(path)} of {latest.modified:{_MINUTES}}"
            times = f"{who} handed in {assignment} {len(older) + 1} times"
            report.notes.append(f"{times}: took {took}, not {others}{more}")
        return latest, (notebook_of(content, course.released[assignment]) if path.lower().endswith(".py") else content)
    return None


def _rank(one: Identified) -> tuple[bool, bool, datetime, int, int]:
    """Orders the copies of one notebook: a script, JupyterLab's and Windows' copies, then by time, depth and number.

    A browser or system appends the number. A copy is what its owner kept beside the notebook, even if it is newer.
    """
    name = one.path.lower()
    number = re.search(r"(?:\((\d+)\)|-(\d+))\.ipynb(?:\.txt)?$", name)
    copied = re.search(r"(?:-copy\d+| - copy(?: \(\d+\))?)\.ipynb(?:\.txt)?$", name)
    nth = int(number[1] or number[2]) if number else 0
    return not name.endswith(".py"), not copied, one.modified, -len(one.parts), nth


def _store(
    course: Course, student: str, assignment: str, one: Identified, content: bytes, report: CollectReport
) -> bool:
    target = course.notebook("submitted", student, assignment)
    if target.parent.resolve() != target.parent:
        report.refuse(one.path, f"{target.parent} leads elsewhere; not written", student)
        return False
    stamps = [target.with_name(name) for name in ("timestamp.txt", "collected.txt")]
    known = read_timestamp(stamps[0])
    kept = known or read_timestamp(stamps[1])
    try:
        if target.is_file() and kept and target.read_bytes() == content:
            if known and not one.timed:
                return True  # it was handed in when it was, whenever it was downloaded
            kept = known
        if target.is_file() and kept and kept > one.modified:
            later = f"{student} has a later {assignment}, of {kept:{_MINUTES}}"
            report.notes.append(f"{later}; kept it, not {shown(one.path)}")
            return False
        write_atomically(target, content)
        used, other = stamps if one.timed else reversed(stamps)  # nbgrader reads timestamp.txt only
        write_atomically(used, f"{one.modified:%Y-%m-%d %H:%M:%S.%f} UTC\n".encode())
        other.unlink(missing_ok=True)
    except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
        report.refuse(one.path, f"{target} cannot be written: {error.strerror}", student)
        return False
    return True
