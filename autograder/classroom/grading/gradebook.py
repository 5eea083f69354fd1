"""Keeps grades in nbgrader's database and in autograded/. Only the process that grades writes them."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
import shutil
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import nbgrader.api
from nbformat import from_dict
from nbgrader.api import (
    Assignment,
    Comment,
    Grade,
    Gradebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.dbutil import ALEMBIC_DIR
from sqlalchemy import select
from sqlalchemy.exc import SAWarning, SQLAlchemyError
from sqlalchemy.orm import selectinload
from traitlets.config import Config

from ...text import visible
from ...verdict import GRADER_ERROR
from ..course import COURSE_ID, Course, CourseError, configure
from ..files import read_timestamp, write_atomically
from ..intake.people import ClassList
from ..submission import NO_NOTEBOOK, REVIEW, answers_in, checks_in, exercise_of, grade_id
from .judging import Row, ungraded
from .record import NAME, points_in, record_of

TOGETHER, WITHIN = 64, 0.25  # rows of one transaction; seconds that a row may wait where others come fast
NOT_IN_GRADEBOOK = "not in this gradebook; grade again, or give the --db of the grading"


def newest_schema() -> str:
    """What nbgrader writes into a new database as its version.

    nbgrader asks the command `alembic`, which takes three seconds and need not be on the PATH.
    """
    from alembic.script import ScriptDirectory

    return ScriptDirectory(ALEMBIC_DIR).get_current_head()


nbgrader.api.get_alembic_version = newest_schema
# nbgrader's way to add a submission makes SQLAlchemy 2.1 warn, three times for each.
warnings.filterwarnings("ignore", "Object of type .* not in session", SAWarning)


def open_gradebook(course: Course) -> Gradebook:
    """The course's gradebook, which is made if there is none."""
    with _said("opened"):
        return Gradebook(course.db_url, COURSE_ID)


@contextlib.contextmanager
def _said(what: str) -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, ImportError) as error:
        reason = re.sub(r"//[^@]*@", "//…@", str(error).partition("\n")[0])  # no password in a message
        raise CourseError(f"the gradebook's database cannot be {what}: {visible(reason, 300)}") from None


def register(course: Course, gradebook: Gradebook, assignments: Iterable[str]) -> None:
    """Give the gradebook some of the released assignments with their cells and points, unless it has them."""
    rules = course.rules()
    for assignment, notebook in course.released.items():
        if assignment not in assignments:
            continue
        due = rules.due(assignment)  # one that was set with nbgrader holds where course.toml says none
        known = gradebook.update_or_create_assignment(assignment, **({"duedate": due} if due else {})).notebooks
        there = {cell.name: cell.source for one in known for cell in one.source_cells}
        points = {cell.name: cell.max_score for one in known for cell in one.grade_cells}
        gradebook.db.commit()  # SaveCells has a connection of its own
        checks = {grade_id(check.cell): check for check in checks_in(notebook)}
        texts = {name: cell["source"] for name, cell in answers_in(notebook).items()}
        texts |= {name: check.cell["source"] for name, check in checks.items()}
        if there == texts and points == {name: check.points for name, check in checks.items()}:
            continue
        from nbgrader.preprocessors import SaveCells  # and all of nbconvert with it

        try:
            SaveCells().preprocess(from_dict(notebook), resources(course, "", assignment))
        except RuntimeError:
            raise CourseError(
                f"{assignment}: release/ has other cells than the notebook that was graded before; "
                "grade the new one in a course directory of its own"
            ) from None


def resources(course: Course, student: str, assignment: str) -> dict:
    names = {"student": student, "assignment": assignment, "notebook": assignment}
    return {"unique_key": assignment, "nbgrader": {**names, "db_url": course.db_url}}


class Saver:
    """Writes rows to the database, then to autograded/ with their records. What goes wrong becomes a note on its row.

    Rows that come fast share a transaction: one for each costs as much as to judge a small answer. Those that wait
    are saved when the `with` block ends, after Ctrl-C too.
    """

    def __init__(self, course: Course, gradebook: Gradebook, lateness: Lateness) -> None:
        self._course, self._db, self._lateness = course, gradebook.db, lateness
        self._waiting: list[_Waiting] = []
        self._saved = -math.inf
        self._lessons: dict[str, Assignment] = {}

    def __enter__(self) -> Saver:
        self._db().expire_on_commit = False  # lessons and their cells stay as they are
        return self

    def __exit__(self, *error: object) -> None:
        self._save()

    def add(self, row: Row, record: dict) -> None:
        if row.assignment in self._course.released:
            self._waiting.append(_Waiting(row, record, row.notebook or ungraded(self._course, row)))
        if len(self._waiting) >= TOGETHER or time.monotonic() - self._saved > WITHIN:
            self._save()

    def _save(self) -> None:
        saved = self._waiting
        self._db.rollback()  # what Ctrl-C may have left
        if not self._written(saved):  # one of them is to blame
            saved = [one for one in saved if self._written([one], one.row)]
        for one in saved:
            try:
                self._write_files(one)
            except Exception as error:
                one.row.fail(error)
        self._waiting = []
        self._saved = time.monotonic()

    def _written(self, waiting: list[_Waiting], blamed: Row | None = None) -> bool:
        """Whether some rows are in the database: all of them or none."""
        try:
            with self._db.no_autoflush:
                submissions = [self._submission(one, there) for there in [self._there(waiting)] for one in waiting]
            self._db.flush()
            for submission in submissions:
                for notebook in submission.notebooks:
                    self._db.expire(notebook, ["score"])  # a sum that the database makes
                self._lateness.apply(submission)
            self._db.commit()
            return True
        except Exception as error:
            self._db.rollback()
            if blamed:
                blamed.fail(error)
            return False

    def _there(self, waiting: list[_Waiting]) -> dict[tuple[str, str], SubmittedAssignment]:
        """(student, assignment's id) -> what the database has of them. Students who are new are added."""
        students = {one.row.student for one in waiting}
        for name in {one.row.assignment for one in waiting} - self._lessons.keys():
            self._lessons[name] = self._db.query(Assignment).filter_by(name=name).one()
        known = set(self._db.scalars(select(Student.id).where(Student.id.in_(students))))
        self._db.add_all(Student(id=name, first_name="", last_name=name) for name in sorted(students - known))
        notebooks = selectinload(SubmittedAssignment.notebooks)
        there = self._db.scalars(
            select(SubmittedAssignment)
            .where(SubmittedAssignment.student_id.in_(known))
            .where(SubmittedAssignment.assignment_id.in_([lesson.id for lesson in self._lessons.values()]))
            .options(notebooks.selectinload(SubmittedNotebook.grades))
            .options(notebooks.selectinload(SubmittedNotebook.comments))
        )
        return {(submission.student_id, submission.assignment_id): submission for submission in there}

    def _submission(self, one: _Waiting, there: dict[tuple[str, str], SubmittedAssignment]) -> SubmittedAssignment:
        """What nbgrader's add_submission and SaveAutoGrades do, without a commit for each."""
        lesson = self._lessons[one.row.assignment]
        submission = there.get((one.row.student, lesson.id))
        if submission is None:
            submission = SubmittedAssignment(assignment=lesson, student_id=one.row.student)
            for notebook in lesson.notebooks:
                submitted = SubmittedNotebook(notebook=notebook, assignment=submission)
                submitted.grades = [Grade(cell=cell) for cell in (*notebook.grade_cells, *notebook.task_cells)]
                submitted.comments = [Comment(cell=cell) for cell in (*notebook.solution_cells, *notebook.task_cells)]
            self._db.add(submission)
        cells = {grade_id(check.cell): check.cell for check in checks_in(one.notebook)}
        for submitted in submission.notebooks:
            by_hand = any(grade.manual_score is not None for grade in submitted.grades)
            same = self._same_answers(one) if by_hand else ()
            for grade in submitted.grades:
                write_grade(grade, cells[grade.cell.name], exercise_of(grade.cell.name) in same)
            for comment in submitted.comments:
                comment.auto_comment = None
        return submission

    def _same_answers(self, one: _Waiting) -> set[str]:
        """The exercises whose answers are those that were graded before."""
        before = record_of(self._course, *one.row.names)
        now = one.notebook["metadata"].get(NAME, {})
        judged, same = now.get("judged", {}), before.get("answers") and before.get("answers") == now.get("answers")
        return {name for name, answer in judged.items() if same or before.get("judged", {}).get(name) == answer}

    def _write_files(self, one: _Waiting) -> None:
        graded = self._course.notebook("autograded", *one.row.names)
        _copy_extras(self._course, one.row, graded.parent)
        one.notebook["metadata"].setdefault(NAME, {}).update(one.record)
        write_atomically(graded, json.dumps(one.notebook).encode())


def write_grade(grade: Grade, cell: dict, same_answer: bool = False) -> None:
    """Put the verdict in a check cell into its row of the database. A person's grade stays.

    It is asked for again where the answer is not the one that the person saw. `needs_manual_grade` is where it is
    kept that somebody must decide; `waiting` reads it.
    """
    slug = cell["metadata"]["verdict"]["diagnosis"]
    failed = slug in (NO_NOTEBOOK, GRADER_ERROR)
    grade.auto_score = None if slug == GRADER_ERROR else 0.0 if failed else points_in(cell)
    if grade.manual_score is None:
        grade.needs_manual_grade = failed or grade.auto_score is None or bool(cell["metadata"].get(REVIEW))
    elif not same_answer:
        grade.needs_manual_grade = True


class _Waiting(NamedTuple):
    """A row that is not in the database yet."""

    row: Row
    record: dict
    notebook: dict


class Lateness:
    """Brings what course.toml says into the gradebook: when something came, extensions, penalties.

    The penalty is asked of nbgrader's plug-in for late submissions, as `nbgrader autograde` does; a course may have
    its own one.
    """

    def __init__(self, course: Course) -> None:
        self._course, self._rules, self._classlist = course, course.rules(), ClassList(course)

    @functools.cached_property
    def _assign(self):
        from nbgrader.preprocessors import AssignLatePenalties  # and all of nbconvert with it

        config = Config()
        configure(config)  # the course may be new, and was opened before it had a configuration
        config.merge(self._course.config)
        assign = AssignLatePenalties(config=config)
        assign.course = self._course
        assign.init_plugin()
        return assign

    def _penalty(self, student: str, assignment: str, score: float, late: float) -> float | None:
        """What is taken off a score for so many seconds; None if nothing is."""
        self._assign.student_id, self._assign.assignment_id = student, assignment
        asked = self._assign.plugin_inst.late_submission_penalty(student, score, late)
        return min(max(asked, 0.0), score) if asked else None

    def apply(self, submission: SubmittedAssignment) -> None:
        """Write it to the submission; the caller commits. Its grades are in the database."""
        student, assignment = submission.student_id, submission.assignment.name
        came = self._rules.handed_in(student, assignment) or read_timestamp(self._course.stamp(student, assignment))
        submission.timestamp = came and came.astimezone(UTC).replace(tzinfo=None)
        submission.extension = self._rules.extension(student, assignment)
        late = submission.total_seconds_late
        if not late and self._classlist.is_late(student, assignment):
            late = self._rules.least_late(assignment)  # its system says so, and nobody says how late
        for notebook in submission.notebooks:
            penalty = self._penalty(student, assignment, notebook.score, late) if late > 0 else None
            notebook.late_submission_penalty = penalty

    def apply_to(self, gradebook: Gradebook, names: set[tuple[str, str]]) -> None:
        """Write it to some (student, assignment) that were graded before."""
        for submission in gradebook.db.query(SubmittedAssignment).all() if names else ():
            if (submission.student_id, submission.assignment.name) in names:
                self.apply(submission)
        gradebook.db.commit()


@dataclass(frozen=True)
class Marks:
    """What the gradebook says of a submission: its score after the penalty, its points, when it came (UTC).

    `scores` has (score, points, whether it waits for a person) by the name of a check cell, `comments` by exercise.
    """

    score: float
    points: float
    penalty: float
    scores: dict[str, tuple[float, float, bool]]
    comments: dict[str, str]
    came: datetime | None = None


def marks_in(gradebook: Gradebook, student: str = "") -> dict[tuple[str, str], Marks]:
    """(student, assignment) -> its marks, of all or of one. A few queries: nbgrader's own ways ask for each cell."""
    loaded = (selectinload(SubmittedNotebook.grades), selectinload(SubmittedNotebook.comments))
    notebooks = gradebook.db.query(SubmittedNotebook).options(*loaded)
    if student:
        notebooks = notebooks.filter(SubmittedNotebook.assignment.has(student_id=student))
    found = {}
    for notebook in notebooks:
        submission, penalty = notebook.assignment, notebook.late_submission_penalty or 0.0
        found[submission.student_id, submission.assignment.name] = Marks(
            round(notebook.score - penalty, 6),
            notebook.max_score,
            penalty,
            {g.cell.name: (g.score, g.max_score, bool(g.needs_manual_grade)) for g in notebook.grades},
            {c.cell.name: c.comment for c in notebook.comments if c.comment},
            submission.timestamp and submission.timestamp.replace(tzinfo=UTC),
        )
    return found


def graded_in(gradebook: Gradebook) -> set[tuple[str, str]]:
    """The (student, assignment) that this database has a submission of."""
    return {(s.student_id, s.assignment.name) for s in gradebook.db.query(SubmittedAssignment).all()}


def waiting(course: Course, gradebook: Gradebook) -> dict[tuple[str, str], list[str]]:
    """(student, assignment) -> why it waits for a person. This is the only place that says what waits."""
    found: dict[tuple[str, str], list[str]] = {}
    with _said("read"):
        grades = gradebook.db.query(Grade).filter(Grade.needs_manual_grade).all()
    for grade in grades:
        submission, name = grade.notebook.assignment, exercise_of(grade.cell.name)
        names = submission.student_id, submission.assignment.name
        lines = found.setdefault(names, list(record_of(course, *names).get("notes", [])))
        if grade.manual_score is not None:
            score = f"{grade.manual_score:g} was given by hand for another answer"
            lines.append(f"{name}: {score}; give it again in formgrader")
    return found


def _copy_extras(course: Course, row: Row, folder: Path) -> None:
    """What nbgrader keeps beside an autograded notebook: its figures and its timestamp."""
    assets, stamp = course.root / "release" / row.assignment / "assets", course.stamp(*row.names)
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
