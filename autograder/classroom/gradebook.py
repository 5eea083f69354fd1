"""Keeps grades in nbgrader's database and in autograded/. Only the process that grades writes them."""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.preprocessors import AssignLatePenalties, SaveCells
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from ..text import visible
from .collect import read_timestamp
from .course import COURSE_ID, Course, CourseError, write_atomically
from .judging import Row, grader_error, ungraded
from .nbgrader_plugins import write_grade
from .record import NAME
from .submission import grade_id

NOT_IN_GRADEBOOK = "not in this gradebook; grade again, or give the --db of the grading"

# nbgrader's way to add a submission makes SQLAlchemy 2.1 warn, three times for each.
warnings.filterwarnings("ignore", "Object of type .* not in session", SAWarning)


def open_gradebook(course: Course) -> Gradebook:
    """The course's gradebook. To make one, nbgrader runs `alembic`, which is beside our Python."""
    if not shutil.which("alembic"):
        beside = str(Path(sys.executable).parent)
        os.environ["PATH"] = os.pathsep.join([beside, os.environ.get("PATH", "")])
    try:
        return Gradebook(course.db_url, COURSE_ID)
    except (SQLAlchemyError, ImportError) as error:
        reason = re.sub(r"//[^@]*@", "//…@", str(error).partition("\n")[0])  # no password in a message
        raise CourseError(f"the gradebook's database cannot be opened: {visible(reason, 300)}") from None


def register(course: Course) -> None:
    """Give the gradebook the released assignments with their cells and points."""
    for assignment, notebook in course.released.items():
        with open_gradebook(course) as gradebook:
            gradebook.update_or_create_assignment(assignment)
        try:
            SaveCells().preprocess(nbformat.from_dict(notebook), resources(course, "", assignment))
        except RuntimeError:
            raise CourseError(
                f"{assignment}: release/ has other cells than the notebook that was graded before; "
                "grade the new one in a course directory of its own"
            ) from None


def resources(course: Course, student: str, assignment: str) -> dict:
    names = {"student": student, "assignment": assignment, "notebook": assignment}
    return {"unique_key": assignment, "nbgrader": {**names, "db_url": course.db_url}}


def save(course: Course, gradebook: Gradebook, row: Row, record: dict) -> None:
    """Write a row to the database, then to autograded/ with its record. What goes wrong becomes a note on the row."""
    if row.assignment not in course.released:
        return
    notebook = nbformat.from_dict(row.notebook or ungraded(course, row))
    folder = course.notebook("autograded", row.student, row.assignment).parent
    stamp = course.root / "submitted" / row.student / row.assignment / "timestamp.txt"
    try:
        try:
            gradebook.find_student(row.student)
        except MissingEntry:
            gradebook.add_student(row.student, first_name="", last_name=row.student)
        submission = gradebook.update_or_create_submission(
            row.assignment, row.student, timestamp=read_timestamp(stamp)
        )
        _write_grades(submission, notebook)
        gradebook.db.commit()
        if submission.total_seconds_late > 0 or submission.late_submission_penalty:
            names = resources(course, row.student, row.assignment)
            AssignLatePenalties(config=course.config).preprocess(notebook, names)
            gradebook.db.expire_all()  # it has a connection of its own
        _copy_extras(course, row.assignment, stamp, folder)
        notebook.metadata.setdefault(NAME, {}).update(record)
        write_atomically(folder / f"{row.assignment}.ipynb", nbformat.writes(notebook).encode())
    except Exception as error:
        gradebook.db.rollback()
        row.notes.append(grader_error(error))
        row.needs_review = row.failed = True


def _write_grades(submission: SubmittedAssignment, notebook: NotebookNode) -> None:
    """What nbgrader's SaveAutoGrades does, without a new connection for each notebook and a commit for each cell."""
    cells = {grade_id(cell): cell for cell in notebook.cells}
    for submitted in submission.notebooks:
        for grade in submitted.grades:
            write_grade(grade, cells[grade.name])
        for comment in submitted.comments:
            comment.auto_comment = None


def graded_in(gradebook: Gradebook) -> set[tuple[str, str]]:
    """The (student, assignment) that this database has a submission of."""
    return {(s.student_id, s.assignment.name) for s in gradebook.db.query(SubmittedAssignment).all()}


def _copy_extras(course: Course, assignment: str, stamp: Path, folder: Path) -> None:
    """What nbgrader keeps beside an autograded notebook: its figures and its timestamp."""
    assets = course.root / "release" / assignment / "assets"
    if assets.is_dir():
        shutil.copytree(assets, folder / "assets", dirs_exist_ok=True)
    if stamp.is_file():
        write_atomically(folder / stamp.name, stamp.read_bytes())


def graded_folders(course: Course) -> list[tuple[str, str]]:
    there = course.handed_in("autograded")
    if not there:
        where = course.root / "autograded"
        raise CourseError(f"{where}: nothing is graded yet; run `autograder grade` first")
    return there
