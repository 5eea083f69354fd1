"""Keeps grades in nbgrader's database and in autograded/. Only the process that grades writes them, one at a time."""

import contextlib
import fcntl
import functools
import json
import re
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import nbgrader.api
from nbformat import from_dict
from nbgrader.api import Comment, Grade, Gradebook, MissingEntry, Student, SubmittedAssignment, SubmittedNotebook
from nbgrader.dbutil import ALEMBIC_DIR
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SAWarning, SQLAlchemyError
from sqlalchemy.orm import selectinload
from sqlalchemy.pool import NullPool

from ...text import visible
from ...verdict import Slug
from ..course import COURSE_ID, Course, CourseError, read_timestamp, write_atomically
from ..intake.people import ClassList
from ..submission import REVIEW, answers_in, checks_in, exercise_of, grade_id
from .judging import NAME, Row, graded, points_in, ungraded

NOT_IN_GRADEBOOK = "not in this gradebook; grade again, or give the --db of the grading"
GRADING = 37392161452018436  # of the lock on a server: any number that no other program takes
WAITING = "another grading of this gradebook is at work; waiting for it to end"


def newest_schema() -> str:
    """A new database's version. nbgrader asks the command `alembic`: it takes 3 s, and need not be on the PATH."""
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


@contextlib.contextmanager
def one_grader(course: Course, say: Callable[[str], None]) -> Iterator[None]:
    """Wait until no other process grades this course, or into this database; a killed one counts no longer.

    A database of SQLite or PostgreSQL is locked for all course directories that use it, others only for this one.
    """
    with contextlib.ExitStack() as held:
        held.enter_context(_file_lock(course.root / ".grading.lock", say))
        url = make_url("sqlite://")
        with contextlib.suppress(SQLAlchemyError, ValueError):  # what is wrong with it is said when it is opened
            url = make_url(course.db_url)
        if url.get_backend_name() == "postgresql":
            connection = None
            with contextlib.suppress(SQLAlchemyError, ImportError):  # as above
                connection = held.enter_context(create_engine(url, poolclass=NullPool).connect())
            if connection:  # an advisory lock of the server's, for this database; it ends with the connection
                if not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": GRADING}).scalar():
                    say(WAITING)
                    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": GRADING})
                connection.commit()
        elif url.get_backend_name() == "sqlite" and url.database:
            database = Path(url.database)
            if database.parent.is_dir() and database.parent.resolve() != course.root:
                held.enter_context(_file_lock(database.with_name(f".{database.name}.lock"), say))
        yield


@contextlib.contextmanager
def _file_lock(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(WAITING)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


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
            names = {"student": "", "assignment": assignment, "notebook": assignment, "db_url": course.db_url}
            SaveCells().preprocess(from_dict(notebook), {"unique_key": assignment, "nbgrader": names})
        except RuntimeError:
            what = "release/ has other cells than the notebook that was graded before"
            raise CourseError(f"{assignment}: {what}; grade the new one in a course directory of its own") from None


class Lateness:
    """Brings what course.toml says into the gradebook. A plug-in of the course's own comes before it for penalties."""

    def __init__(self, course: Course) -> None:
        self._course, self._rules, self._classlist = course, course.rules(), ClassList(course)

    @functools.cached_property
    def _nbgraders(self):
        from nbgrader.preprocessors import AssignLatePenalties  # and all of nbconvert with it

        assign = AssignLatePenalties(config=self._course.config)
        assign.init_plugin()
        return assign

    def _penalty(self, student: str, assignment: str, score: float, late: float) -> float | None:
        if "plugin_class" not in self._course.config.AssignLatePenalties:
            said = self._rules.penalty(assignment, self._course.points(assignment), timedelta(seconds=late))
            if said is not None:
                return said
        self._nbgraders.student_id, self._nbgraders.assignment_id = student, assignment
        return self._nbgraders.plugin_inst.late_submission_penalty(student, score, late)

    def apply(self, submission: SubmittedAssignment) -> None:
        """Write it to the submission; the caller commits. Its grades are in the database."""
        student, assignment = submission.student_id, submission.assignment.name
        came = self._rules.handed_in(student, assignment) or read_timestamp(self._course.stamp(student, assignment))
        submission.timestamp = came and came.astimezone(UTC).replace(tzinfo=None)
        submission.extension = self._rules.extension(student, assignment)
        late = submission.total_seconds_late
        if not late and (student, assignment) in self._classlist.late:
            late = self._rules.least_late(assignment)  # its system says so, and nobody says how late
        for notebook in submission.notebooks:
            asked = self._penalty(student, assignment, notebook.score, late) if late > 0 else None
            notebook.late_submission_penalty = min(max(asked, 0.0), notebook.score) if asked else None


def save(course: Course, gradebook: Gradebook, lateness: Lateness, row: Row, record: dict) -> None:
    """Write a row to the database, then to autograded/ with its record. What goes wrong becomes a note on the row."""
    if row.assignment not in course.released:
        return
    notebook = row.notebook or ungraded(course, row)
    try:
        save_grades(course, gradebook, lateness, row, notebook)
        path = course.notebook("autograded", *row.names)
        # Beside it nbgrader keeps its figures and its timestamp.
        assets, stamp = course.root / "release" / row.assignment / "assets", course.stamp(*row.names)
        if assets.is_dir():
            shutil.copytree(assets, path.parent / "assets", dirs_exist_ok=True)
        if stamp.is_file():
            write_atomically(path.with_name(stamp.name), stamp.read_bytes())
        notebook["metadata"].setdefault(NAME, {}).update(record)
        write_atomically(path, json.dumps(notebook).encode())
    except Exception as error:
        gradebook.db.rollback()
        row.fail(error)


def save_grades(course: Course, gradebook: Gradebook, lateness: Lateness, row: Row, notebook: dict) -> None:
    """Write a notebook's verdicts to the database, and what being late costs."""
    try:
        gradebook.find_student(row.student)
    except MissingEntry:
        gradebook.db.add(Student(id=row.student, first_name="", last_name=row.student))
    submission = _submission(gradebook, row)
    before, now = graded(course, *row.names).record, notebook["metadata"].get(NAME, {})
    all_same = before.get("answers") and before.get("answers") == now.get("answers")
    known = before.get("judged", {})
    same = {name for name, answer in now.get("judged", {}).items() if all_same or known.get(name) == answer}
    cells = {grade_id(check.cell): check.cell for check in checks_in(notebook)}
    for submitted in submission.notebooks:
        for grade in submitted.grades:
            _write_grade(grade, cells[grade.cell.name], exercise_of(grade.cell.name) in same)
        for comment in submitted.comments:
            comment.auto_comment = None
    gradebook.db.flush()
    gradebook.db.expire_all()  # the score of a notebook is a sum that the database makes
    lateness.apply(submission)
    gradebook.db.commit()


def _submission(gradebook: Gradebook, row: Row) -> SubmittedAssignment:
    """What the database has of a submission. A new one is not committed: without its grades it would count as 0."""
    with contextlib.suppress(MissingEntry):
        return gradebook.find_submission(row.assignment, row.student)
    lesson = gradebook.find_assignment(row.assignment)
    submission = SubmittedAssignment(assignment=lesson, student_id=row.student)
    with gradebook.db.no_autoflush:
        for notebook in lesson.notebooks:
            submitted = SubmittedNotebook(notebook=notebook, assignment=submission)
            submitted.grades = [Grade(cell=cell) for cell in (*notebook.grade_cells, *notebook.task_cells)]
            submitted.comments = [Comment(cell=cell) for cell in (*notebook.solution_cells, *notebook.task_cells)]
    gradebook.db.add(submission)
    return submission


def _write_grade(grade: Grade, cell: dict, same_answer: bool) -> None:
    """Put the verdict in a check cell into its row of the database. A person's grade stays.

    It is asked for again where the answer is not the one that the person saw. `needs_manual_grade` is where it is
    kept that somebody must decide; `waiting` reads it.
    """
    slug = cell["metadata"]["verdict"]["diagnosis"]
    failed = slug in (Slug.NO_NOTEBOOK, Slug.GRADER_ERROR)
    grade.auto_score = None if slug == Slug.GRADER_ERROR else 0.0 if failed else points_in(cell)
    if grade.manual_score is None:
        grade.needs_manual_grade = failed or grade.auto_score is None or bool(cell["metadata"].get(REVIEW))
    elif not same_answer:
        grade.needs_manual_grade = True


class Score(NamedTuple):
    """What the gradebook says of an exercise. `by_hand` is the score that a person gave, None if nobody did."""

    score: float
    points: float
    waits: bool
    by_hand: float | None


@dataclass(frozen=True)
class Marks:
    """A submission in the gradebook: `score` after the penalty, `scores` and `comments` by exercise, `came` in UTC."""

    score: float
    points: float
    penalty: float
    scores: dict[str, Score]
    comments: dict[str, str]
    came: datetime | None = None


def marks_in(gradebook: Gradebook, student: str = "", only_waiting: bool = False) -> dict[tuple[str, str], Marks]:
    """(student, assignment) -> its marks, of all or of one. A few queries: nbgrader's own ways ask for each cell.

    only_waiting: of what waits for a person. Raises CourseError.
    """
    loaded = (selectinload(SubmittedNotebook.grades), selectinload(SubmittedNotebook.comments))
    notebooks = gradebook.db.query(SubmittedNotebook).options(*loaded)
    if student:
        notebooks = notebooks.filter(SubmittedNotebook.assignment.has(student_id=student))
    if only_waiting:
        notebooks = notebooks.filter(SubmittedNotebook.grades.any(Grade.needs_manual_grade))
    with _said("read"):
        there = notebooks.all()
    found = {}
    for notebook in there:
        submission, penalty = notebook.assignment, notebook.late_submission_penalty or 0.0
        scores = {
            exercise_of(g.cell.name): Score(g.score, g.max_score, bool(g.needs_manual_grade), g.manual_score)
            for g in notebook.grades
        }
        comments = {c.cell.name: c.comment for c in notebook.comments if c.comment}
        came = submission.timestamp and submission.timestamp.replace(tzinfo=UTC)
        marks = Marks(round(notebook.score - penalty, 6), notebook.max_score, penalty, scores, comments, came)
        found[submission.student_id, submission.assignment.name] = marks
    return found


def waiting(course: Course, marks: dict[tuple[str, str], Marks]) -> dict[tuple[str, str], list[str]]:
    """(student, assignment) -> why it waits for a person. This is the only place that says what waits."""
    found: dict[tuple[str, str], list[str]] = {}
    for names, mark in marks.items():
        for exercise, score in mark.scores.items():
            if score.waits:
                lines = found.setdefault(names, list(graded(course, *names).record.get("notes", [])))
                if score.by_hand is not None:
                    given = f"{score.by_hand:g} was given by hand for another answer"
                    lines.append(f"{exercise}: {given}; give it again in formgrader")
    return found


def graded_folders(course: Course) -> list[tuple[str, str]]:
    if there := course.handed_in("autograded"):
        return there
    raise CourseError(f"{course.root / 'autograded'}: nothing is graded yet; run `autograder grade` first")
