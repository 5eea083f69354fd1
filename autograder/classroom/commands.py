"""The commands for a class: what each takes, and what it calls. Nothing slow is imported before it is needed."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

CLASS_COMMANDS = {
    "run": "collect, grade, feedback, report and export in one go",
    "collect": "take filled notebooks from a folder or a zip",
    "grade": "judge what was collected",
    "feedback": "write a page for each student",
    "report": "write one page about the class",
    "export": "write the grades as CSV",
    "gradescope": "write the autograder of an assignment for Gradescope",
    "comment": "write one comment to all whose answer has one diagnosis",
    "forget": "remove what the course, and a room, keep of a person (docs/PRIVACY.md)",
    "update": "bring the lessons of today into a course that has older ones",
    "lti": "key, roster and grades by LTI 1.3 (docs/LTI.md)",
    "exchange": "release lessons, collect answers, give pages back through nbgrader's exchange (docker/hub/)",
}
JUDGING = ("run", "grade", "gradescope")  # they may trust the submissions


def add_options(command: argparse.ArgumentParser, name: str) -> None:
    """What a command takes beside --trust-submissions."""
    course = Path(os.environ.get("ROOM", ""), "course")  # an instructor in a room has it set
    command.add_argument("--course", type=Path, default=course, help="nbgrader's course directory")
    command.add_argument("--db", help="URL of the gradebook's database (default: gradebook.db in the course)")
    if name in ("collect", "run"):
        command.add_argument("source", type=Path, help="a folder, a zip or a notebook")
        command.add_argument("--student", default="", help="whose it is, where no name says so")
        command.add_argument("--roster", type=Path, help="the class, in the CSV of your LMS; the course keeps it")
    if name == "grade":
        command.add_argument("--assignment", action="append", help="only this assignment (may be repeated)")
        command.add_argument("--student", action="append", help="only this student (may be repeated)")
    if name in ("grade", "run"):
        command.add_argument("--workers", type=int, help="judges side by side (default: one per card, or per core)")
        command.add_argument("--cluster", metavar="ADDRESS", help="judge on a Dask cluster, such as tcp://host:8786")
        command.add_argument("--all", action="store_true", help="grade again what is unchanged, too")
        command.add_argument(
            "--write-changes", action="store_true", help="write other points for the same answers (see changes.csv)"
        )
    if name in ("export", "run"):
        command.add_argument("--to", type=Path, help="folder for the CSV files (default: the course directory)")
    if name == "export":
        _lms_options(command)
    if name == "comment":
        command.add_argument("exercise")
        command.add_argument("diagnosis", help="as in misconceptions.csv")
        command.add_argument("text", help='what to write; "" takes it away')
        command.add_argument("--replace", action="store_true", help="also where somebody wrote another comment")
    if name == "forget":
        command.add_argument("name", help="the student's id, as in grades.csv")
        command.add_argument("--room", type=Path, help="the folder of a room that is closed; needs root")
    if name == "gradescope":
        command.add_argument("assignment")
        command.add_argument("--to", type=Path, help="the zip (default: in the course directory)")
    if name == "lti":
        command.add_argument("step", choices=("key", "roster", "grades"))
    if name == "exchange":
        command.add_argument("step", choices=("release", "collect", "give-back"))
        room = os.environ.get("ROOM", "/srv/workshop")
        command.add_argument("--exchange", type=Path, default=Path(room, "exchange"), help="its folder")
        command.add_argument("--assignment", action="append", default=[], help="only this lesson (may be repeated)")


def _lms_options(command: argparse.ArgumentParser) -> None:
    systems = ("canvas", "moodle", "blackboard", "brightspace", "gradescope")
    command.add_argument("--for", dest="system", choices=systems, help="fill the CSV that your LMS exported")
    command.add_argument("--into", type=Path, help="that CSV; it is copied and keeps its columns")
    command.add_argument(
        "--column", action="append", default=[], metavar="ASSIGNMENT=TITLE", help="which column is which (repeatable)"
    )
    command.add_argument("--scale", action="store_true", help="turn scores into the points that the LMS has")


def _collect(course, options):
    from .intake.collect import collect

    return collect(options.source, course, options.student, options.roster)


def _run(course, options):
    from .run import run

    return run(options.source, course, options.student, options.roster, options.to, **_grading(options))


def _grade(course, options):
    from .grading.grade import grade

    return grade(course, options.assignment, options.student, **_grading(options))


def _grading(options) -> dict:
    return {
        "workers": options.workers,
        "cluster": options.cluster,
        "confine": not options.trust_submissions,
        "again": options.all,
        "write_changes": options.write_changes,
        "progress": lambda line: print(line, file=sys.stderr),
    }


def _export(course, options):
    from .course import CourseError
    from .reports.export import export

    if not options.system:
        return export(course, options.to)
    from .lms.filled import export_for

    if not options.into:
        raise CourseError(f"found no --into; give the CSV that {options.system} exported: --into grades.csv")
    if wrong := next((said for said in options.column if "=" not in said), None):
        raise CourseError(f"--column: found {wrong!r}; expected ASSIGNMENT=TITLE, such as '01_vector_add=Lab 1'")
    columns = dict(said.split("=", 1) for said in options.column)
    return export_for(course, options.system, options.into, options.to, columns=columns, scale=options.scale)


def _gradescope(course, options):
    from .lms.gradescope import build_zip

    return build_zip(course, options.assignment, options.to, not options.trust_submissions)


def _forget(course, options):
    from .course import Course
    from .forget import forget

    return forget(Course.open(options.room / "course") if options.room else course, options.name, options.room)


def _calls(where: str, *names: str):
    """A command that calls module:function with the course and these options."""

    def command(course, options):
        module, function = where.split(":")
        work = getattr(importlib.import_module(f".{module}", __package__), function)
        return work(course, *(getattr(options, name) for name in names))

    return command


REPORTS = {
    "run": _run,
    "collect": _collect,
    "grade": _grade,
    "feedback": _calls("reports.feedback:feedback"),
    "report": _calls("reports.report:report"),
    "export": _export,
    "gradescope": _gradescope,
    "comment": _calls("reports.comment:comment", "exercise", "diagnosis", "text", "replace"),
    "forget": _forget,
    "update": _calls("update:update"),
    "lti": _calls("lms.lti:lti", "step"),
    "exchange": _calls("room.exchange:exchange", "exchange", "step", "assignment"),
}
