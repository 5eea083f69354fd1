"""The commands for a class: what each takes, and what it calls. Nothing slow is imported before it is needed."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

Option = tuple[str, dict]


def _option(name: str, **how) -> Option:
    if "dest" in how and ("type" in how or how.get("action") == "append"):
        how = {"metavar": name.lstrip("-").upper()} | how
    return name, how


TRUST = _option("--trust-submissions", action="store_false", dest="confine",
                help="run without confinement: only for code that is your own")  # fmt: skip
SHARED = (
    _option("--course", type=Path, default=Path(os.environ.get("ROOM", ""), "course"),  # a room's instructor has it
            help="nbgrader's course directory"),
    _option("--db", help="URL of the gradebook's database (default: gradebook.db in the course)"),
)  # fmt: skip
COLLECTING = (
    _option("path", metavar="source", type=Path, help="a folder, a zip or a notebook"),
    _option("--student", default="", help="whose it is, where no name says so"),
    _option("--roster", type=Path, help="the class, in the CSV of your LMS; the course keeps it"),
)
GRADING = (
    _option("--workers", type=int, help="judges side by side (default: one per card, or per core)"),
    _option("--cluster", metavar="ADDRESS", help="judge on a Dask cluster, such as tcp://host:8786"),
    _option("--all", action="store_true", dest="again", help="grade again what is unchanged, too"),
    _option("--write-changes", action="store_true", help="write other points for the same answers (see changes.csv)"),
    TRUST,
)
CHOOSING = (
    _option("--assignment", action="append", dest="assignments", help="only this assignment (may be repeated)"),
    _option("--student", action="append", dest="students", help="only this student (may be repeated)"),
)
TO = _option("--to", type=Path, help="folder for the CSV files (default: the course directory)")
FILLING = (
    _option("--for", dest="system", choices=("canvas", "moodle", "blackboard", "brightspace", "gradescope"),
            help="fill the CSV that your LMS exported"),
    _option("--into", type=Path, help="that CSV; it is copied and keeps its columns"),
    _option("--column", action="append", default=[], metavar="ASSIGNMENT=TITLE",
            help="which column is which (repeatable)"),
    _option("--scale", action="store_true", help="turn scores into the points that the LMS has"),
)  # fmt: skip


@dataclass(frozen=True)
class Command:
    """calls: a function, or module:function in this package. It gets the course and, by their names, the options."""

    help: str
    calls: str | Callable
    options: tuple[Option, ...] = ()
    more: dict = field(default_factory=dict)

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        for name, how in (*SHARED, *self.options):
            parser.add_argument(name, **how)

    def run(self, course, options: argparse.Namespace):
        """What the function reports."""
        work = self.calls
        if isinstance(work, str):
            module, function = work.split(":")
            work = getattr(importlib.import_module(f".{module}", __package__), function)
        given = {how.get("dest") or name.lstrip("-").replace("-", "_") for name, how in self.options}
        return work(course=course, **{name: getattr(options, name) for name in given}, **self.more)


def _export(course, system, into, to, column, scale):
    from .course import CourseError
    from .reports.export import export

    if not system:
        return export(course, to)
    from .lms.filled import export_for

    if not into:
        raise CourseError(f"found no --into; give the CSV that {system} exported: --into grades.csv")
    if wrong := next((said for said in column if "=" not in said), None):
        raise CourseError(f"--column: found {wrong!r}; expected ASSIGNMENT=TITLE, such as '01_vector_add=Lab 1'")
    return export_for(course, system, into, to, columns=dict(said.split("=", 1) for said in column), scale=scale)


def _forget(course, name, room):
    from .course import Course
    from .forget import forget

    return forget(Course.open(room / "course") if room else course, name, room)


SAYING = {"progress": lambda line: print(line, file=sys.stderr)}
COMMANDS = {
    "run": Command("collect, grade, feedback, report and export in one go", "run:run",
                   (*COLLECTING, TO, *GRADING), SAYING),
    "collect": Command("take filled notebooks from a folder or a zip", "intake.collect:collect", COLLECTING),
    "grade": Command("judge what was collected", "grading.grade:grade", (*CHOOSING, *GRADING), SAYING),
    "feedback": Command("write a page for each student", "reports.feedback:feedback"),
    "report": Command("write one page about the class", "reports.report:report"),
    "export": Command("write the grades as CSV", _export, (TO, *FILLING)),
    "gradescope": Command("write the autograder of an assignment for Gradescope", "lms.gradescope:build_zip", (
        _option("assignment"),
        _option("--to", dest="path", type=Path, help="the zip (default: in the course directory)"),
        TRUST,
    )),
    "comment": Command("write one comment to all whose answer has one diagnosis", "reports.comment:comment", (
        _option("exercise"),
        _option("diagnosis", help="as in misconceptions.csv"),
        _option("text", help='what to write; "" takes it away'),
        _option("--replace", action="store_true", help="also where somebody wrote another comment"),
    )),
    "forget": Command("remove what the course, and a room, keep of a person (docs/PRIVACY.md)", _forget, (
        _option("name", help="the student's id, as in grades.csv"),
        _option("--room", type=Path, help="the folder of a room that is closed; needs root"),
    )),
    "update": Command("bring the lessons of today into a course that has older ones", "update:update"),
    "lti": Command("key, roster and grades by LTI 1.3 (docs/LTI.md)", "lms.lti:lti", (
        _option("step", choices=("key", "roster", "grades")),
    )),
    "exchange": Command("release lessons, collect answers, give pages back through nbgrader's exchange (docker/hub/)",
                        "room.exchange:exchange", (
        _option("step", choices=("release", "collect", "give-back")),
        _option("--exchange", dest="root", type=Path, help="its folder",
                default=Path(os.environ.get("ROOM", "/srv/workshop"), "exchange")),
        _option("--assignment", dest="only", action="append", default=[], help="only this lesson (may be repeated)"),
    )),
}  # fmt: skip
