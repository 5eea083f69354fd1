"""Keeps the gradebook: nbgrader's database and folders, with verdicts from the judge.

    submitted/ ──grade──▶ autograded/ + gradebook.db ──feedback──▶ feedback/
                                                     ──export────▶ grades.csv, exercises.csv

Workers judge in parallel; this process alone writes the database. No cell of a student is executed here or by
nbgrader: `course.configure` gives its commands, and formgrader, the classes at the end of this file.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import csv
import functools
import io
import json
import os
import queue
import re
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbconvert.exporters import Exporter, NotebookExporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.preprocessors import (
    AssignLatePenalties,
    GetGrades,
    NbGraderPreprocessor,
    SaveAutoGrades,
    SaveCells,
)
from sqlalchemy.exc import SAWarning, SQLAlchemyError
from traitlets import Bool

from ..answer import from_notebook
from ..text import visible, visible_json
from ..verdict import GRADER_ERROR, Finding, Verdict
from .collect import read_timestamp
from .course import COURSE_ID, Course, CourseError, write_atomically
from .feedback import ExerciseFeedback, overview, page
from .submission import clean_notebook, grade_id, is_answer, read_submission

NO_NOTEBOOK = "no-notebook"  # like grader-error a verdict that a person must look at
NOT_IN_GRADEBOOK = "not in this gradebook; grade again, or give the --db of the grading"
MAX_PANEL = 200_000

# nbgrader's way to add a submission makes SQLAlchemy 2.1 warn, three times for each.
warnings.filterwarnings("ignore", "Object of type .* not in session", SAWarning)


# -- grade ------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """The grade of one submission. `notes` are what a person should know; `needs_review` says they must.

    `notebook` is what goes to autograded/: the student's answers, the verdicts as outputs.
    """

    student: str
    assignment: str
    notebook: dict | None = field(default=None, repr=False)
    score: float = 0.0
    points: float = 0.0
    notes: list[str] = field(default_factory=list)
    needs_review: bool = False
    seconds: float = 0.0

    def __str__(self) -> str:
        grade = f"{self.score:g} / {self.points:g}"
        state = "needs review" if self.needs_review else "graded"
        notes = f": {' '.join(visible('; '.join(self.notes), 300).split())}" if self.notes else ""
        return f"{_word(self.student):<24} {_word(self.assignment):<20} {grade:>9}  {state}{notes}"


def _word(name: str) -> str:
    """A folder's name for a line of text."""
    return visible(name, 80).replace("\n", "⟨U+000A⟩")


@dataclass
class GradeReport:
    rows: list[Row]

    @property
    def status(self) -> int:
        """Exit status: 0, or 1 where a row needs a person."""
        return int(any(row.needs_review for row in self.rows))

    def print(self, out: Callable[[str], None] = print) -> None:
        for row in self.rows:
            out(str(row))
        waiting = sum(row.needs_review for row in self.rows)
        out(f"{len(self.rows)} submissions graded" + (f"; {waiting} of them need review" if waiting else ""))


def grade(
    course: Course,
    assignments: list[str] | None = None,
    students: list[str] | None = None,
    *,
    workers: int | None = None,
    confine: bool = True,
    new_judge: Callable[[], contextlib.AbstractContextManager] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> GradeReport:
    """Grade what was handed in, and write autograded/ and the gradebook. Grading again gives the same rows.

    `assignments` and `students` choose some; `workers` judge at the same time (as many as processors). Every
    submission gets a row, however broken; CourseError is for a call that is itself wrong, and CannotJudge for an
    installation that misjudges known answers: then nothing is graded.
    """
    todo = _chosen(course, assignments, students)
    if new_judge is None:
        _prove(course, {assignment for _, assignment in todo}, confine)
    workers = min(workers or os.cpu_count() or 1, len(todo))
    rows = []
    with _open(course) as gradebook:
        _register(course)
        for row in _judged(course, todo, workers, new_judge or functools.partial(_confined_judge, confine)):
            _save(course, gradebook, row)
            rows.append(row)
            progress(f"[{len(rows)}/{len(todo)}] {row} ({row.seconds:.1f} s)")
    return GradeReport(sorted(rows, key=lambda row: (row.student, row.assignment)))


def _chosen(
    course: Course, assignments: list[str] | None, students: list[str] | None
) -> list[tuple[str, str]]:
    there = course.handed_in()
    if not there:
        raise CourseError(
            f"{course.root / 'submitted'}: nothing was handed in; run `autograder collect` first"
        )
    for what, asked, known in (
        ("assignment", assignments, {a for _, a in there} | set(course.released)),
        ("student", students, {s for s, _ in there}),
    ):
        for name in asked or ():
            if name not in known:
                names = ", ".join(map(_word, sorted(known)))
                raise CourseError(f"there is no {what} {name!r}; there are: {names}")
    chosen = [
        (student, assignment)
        for student, assignment in there
        if (not students or student in students) and (not assignments or assignment in assignments)
    ]
    if not chosen:
        raise CourseError("none of these students handed in one of these assignments")
    return chosen


def _confined_judge(confine: bool) -> contextlib.AbstractContextManager:
    from ..judge import Judge

    return Judge(confine=confine)


def _prove(course: Course, assignments: set[str], confine: bool) -> None:
    """CannotJudge before the first submission, and not an error in each of its rows."""
    from ..exercises import EXERCISES
    from ..judge.jax import JaxMissing

    cells = [cell for name in assignments & set(course.released) for cell in course.released[name]["cells"]]
    with _confined_judge(confine) as judge:
        for exercise in {_exercise(grade_id(cell)) for cell in filter(_is_check, cells)} & set(EXERCISES):
            with contextlib.suppress(JaxMissing):  # its answers get rows that say so
                judge.prove(exercise)


class _SturdyJudge:
    """A judge that is replaced by a new one after an error of its own. The new one gets one more try."""

    def __init__(self, new_judge: Callable[[], contextlib.AbstractContextManager]) -> None:
        self._new_judge, self._stack, self._running = new_judge, contextlib.ExitStack(), None

    def start(self) -> _SturdyJudge:
        self._running = self._stack.enter_context(self._new_judge())
        return self

    def judge(self, exercise: str, source: str) -> Verdict:
        try:
            return self._judge(exercise, source)
        except Exception:
            return self._judge(exercise, source)

    def _judge(self, exercise: str, source: str) -> Verdict:
        if self._running is None:
            self.start()
        try:
            return self._running.judge(exercise, source)
        except Exception:
            with contextlib.suppress(Exception):
                self.close()
            raise

    def close(self) -> None:
        self._running = None
        self._stack.close()


def _judged(course: Course, todo: list[tuple[str, str]], workers: int, new_judge: Callable) -> Iterator[Row]:
    """A row for each submission, as they are done. Where no judge starts, nothing is graded."""
    idle: queue.SimpleQueue[_SturdyJudge] = queue.SimpleQueue()

    def task(student: str, assignment: str) -> Row:
        judge = idle.get()
        try:
            return judge_submission(course, student, assignment, judge)
        finally:
            idle.put(judge)

    with contextlib.ExitStack() as at_the_end, ThreadPoolExecutor(workers) as pool:
        judges = [_SturdyJudge(new_judge) for _ in range(workers)]
        for judge in judges:
            at_the_end.callback(judge.close)
        for judge in pool.map(_SturdyJudge.start, judges):
            idle.put(judge)
        futures = [pool.submit(task, *names) for names in todo]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def judge_submission(course: Course, student: str, assignment: str, judge) -> Row:
    """The grade of one submission. Never raises: what goes wrong becomes a row that needs review."""
    began = time.perf_counter()
    row = Row(student, assignment)
    try:
        released = course.released.get(assignment)
        if released is None:
            raise LookupError(f"no assignment of this course; there are: {', '.join(course.released)}")
        _judge_into(row, released, _notebook_of(course, student, assignment), judge)
    except Exception as error:
        row.notes.append(_grader_error(error))
        row.needs_review = True
    row.seconds = time.perf_counter() - began
    return row


def _judge_into(row: Row, released: dict, path: Path, judge) -> None:
    submission = read_submission(path, released)
    row.notes += submission.problems
    row.needs_review = not submission.readable
    for cell in filter(_is_check, submission.notebook["cells"]):
        exercise, points = _exercise(grade_id(cell)), float(cell["metadata"]["nbgrader"]["points"])
        if submission.readable:
            verdict, source = _verdict(judge, exercise, points, submission.cells)
            _show_what_was_judged(submission.notebook, released, exercise, source)
        else:
            verdict = _zero(exercise, points, NO_NOTEBOOK, submission.problems[0])
        earned = min(max(verdict.score / verdict.points, 0.0), 1.0) * points
        _write_verdict(cell, verdict, earned)
        row.points += points
        row.score += earned
        if verdict.diagnosis == GRADER_ERROR:
            row.notes.append(f"{exercise}: {verdict.message}")
            row.needs_review = True
    row.notebook = clean_notebook(submission.notebook)


def _verdict(judge, exercise: str, points: float, cells: list[dict]) -> tuple[Verdict, str]:
    """The verdict on an exercise, and the source that it is about."""
    from ..exercises import find

    source = ""
    try:
        source = from_notebook({"cells": cells}, find(exercise)) or ""
        return judge.judge(exercise, source), source
    except Exception as error:
        return _zero(exercise, points, GRADER_ERROR, _grader_error(error)), source


def _show_what_was_judged(notebook: dict, released: dict, exercise: str, source: str) -> None:
    """Put `source` into the answer cell where the student wrote the function in another one."""
    from ..exercises import find

    starter, cell = (
        next((c for c in nb["cells"] if is_answer(c) and grade_id(c) == exercise), {"source": ""})
        for nb in (released, notebook)
    )
    defines = re.search(rf"\bdef\s+{find(exercise).entry}\b", cell["source"])
    elsewhere = cell["source"] == starter["source"] or not defines
    if elsewhere and source and source != from_notebook(released, find(exercise)):
        cell["source"] = source


def _zero(exercise: str, points: float, slug: str, message: str) -> Verdict:
    return Verdict(exercise, False, 0.0, points, "", Finding(slug, f"{message[:1].upper()}{message[1:]}."))


def _grader_error(error: Exception) -> str:
    return f"an error of the grader, not of the student: {type(error).__name__}: {visible(error, 300)}"


def _write_verdict(cell: dict, verdict: Verdict, earned: float) -> None:
    """Put a verdict into the graded cell: as its outputs, and as metadata for feedback and export.

    The points are the last output, in the form that nbgrader reads as partial credit.
    """
    cell["metadata"]["verdict"] = visible_json(verdict.to_json())
    panel = {"text/plain": visible(verdict.to_text()), "text/html": visible(verdict.to_html(), MAX_PANEL)}
    points = {"text/plain": repr(float(earned))}
    cell["outputs"] = [
        nbformat.v4.new_output("display_data", panel),
        nbformat.v4.new_output("execute_result", points, execution_count=1),
    ]


def _notebook_of(course: Course, student: str, assignment: str) -> Path:
    """The submitted notebook: the one with the assignment's name, or the only one there is."""
    expected = course.notebook("submitted", student, assignment)
    there = sorted(expected.parent.glob("*.ipynb"))
    return there[0] if len(there) == 1 else expected


def _is_check(cell: dict) -> bool:
    return bool(cell["metadata"].get("nbgrader", {}).get("grade"))


def _exercise(name: str) -> str:
    return name.removeprefix("check-")


# -- autograded/ and the database -------------------------------------------------------------------------


class SaveVerdicts(SaveAutoGrades):
    """nbgrader's SaveAutoGrades, which also asks for a person where a verdict does."""

    def _add_comment(self, cell: NotebookNode, resources: dict) -> None:
        """Not nbgrader's "No response." either: the verdict says it, and a comment is a person's."""

    def _add_score(self, cell: NotebookNode, resources: dict) -> None:
        super()._add_score(cell, resources)
        slug = cell.metadata.verdict["diagnosis"]
        if slug in (NO_NOTEBOOK, GRADER_ERROR):
            where = resources["nbgrader"]
            grade = self.gradebook.find_grade(
                grade_id(cell), where["notebook"], where["assignment"], where["student"]
            )
            grade.auto_score = None if slug == GRADER_ERROR else 0.0
            grade.needs_manual_grade = True
            self.gradebook.db.commit()


def _open(course: Course) -> Gradebook:
    """The course's gradebook. To make one, nbgrader runs `alembic`, which is beside our Python."""
    if not shutil.which("alembic"):
        beside = str(Path(sys.executable).parent)
        os.environ["PATH"] = os.pathsep.join([beside, os.environ.get("PATH", "")])
    try:
        return Gradebook(course.db_url, COURSE_ID)
    except (SQLAlchemyError, ImportError) as error:
        reason = re.sub(r"//[^@]*@", "//…@", str(error).partition("\n")[0])  # no password in a message
        raise CourseError(f"the gradebook's database cannot be opened: {visible(reason, 300)}") from None


def _register(course: Course) -> None:
    """Give the gradebook the released assignments with their cells and points."""
    for assignment, notebook in course.released.items():
        with _open(course) as gradebook:
            gradebook.update_or_create_assignment(assignment)
        try:
            SaveCells().preprocess(nbformat.from_dict(notebook), _resources(course, "", assignment))
        except RuntimeError:
            raise CourseError(
                f"{assignment}: release/ has other cells than the notebook that was graded before; "
                "grade the new one in a course directory of its own"
            ) from None


def _resources(course: Course, student: str, assignment: str) -> dict:
    names = {"student": student, "assignment": assignment, "notebook": assignment}
    return {"unique_key": assignment, "nbgrader": {**names, "db_url": course.db_url}}


def _save(course: Course, gradebook: Gradebook, row: Row) -> None:
    """Write a row to autograded/ and the database. What goes wrong becomes a note on the row."""
    if row.assignment not in course.released:
        return
    notebook = nbformat.from_dict(row.notebook or _ungraded(course, row))
    folder = course.notebook("autograded", row.student, row.assignment).parent
    stamp = course.root / "submitted" / row.student / row.assignment / "timestamp.txt"
    try:
        write_atomically(folder / f"{row.assignment}.ipynb", nbformat.writes(notebook).encode())
        _copy_extras(course, row.assignment, stamp, folder)
        try:
            gradebook.find_student(row.student)
        except MissingEntry:
            gradebook.add_student(row.student, first_name="", last_name=row.student)
        gradebook.update_or_create_submission(row.assignment, row.student, timestamp=read_timestamp(stamp))
        resources = _resources(course, row.student, row.assignment)
        for preprocessor in (SaveVerdicts, AssignLatePenalties):
            preprocessor(config=course.config).preprocess(notebook, resources)
    except Exception as error:
        gradebook.db.rollback()
        row.notes.append(_grader_error(error))
        row.needs_review = True


def _ungraded(course: Course, row: Row) -> dict:
    """The released notebook, with the error that kept a submission from being graded in every check cell."""
    notebook = copy.deepcopy(course.released[row.assignment])
    for cell in filter(_is_check, notebook["cells"]):
        points = float(cell["metadata"]["nbgrader"]["points"])
        _write_verdict(cell, _zero(_exercise(grade_id(cell)), points, GRADER_ERROR, row.notes[-1]), 0.0)
    return notebook


def _copy_extras(course: Course, assignment: str, stamp: Path, folder: Path) -> None:
    """What nbgrader keeps beside an autograded notebook: its figures and its timestamp."""
    assets = course.root / "release" / assignment / "assets"
    if assets.is_dir():
        shutil.copytree(assets, folder / "assets", dirs_exist_ok=True)
    if stamp.is_file():
        write_atomically(folder / stamp.name, stamp.read_bytes())


# -- feedback ---------------------------------------------------------------------------------------------


class FeedbackExporter(Exporter):
    """Turns an autograded notebook, with the grades that GetGrades put into it, into the student's page."""

    file_extension = ".html"
    output_mimetype = "text/html"

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict | None = None, **kwargs
    ) -> tuple[str, dict]:
        nb, resources = super().from_notebook_node(nb, resources, **kwargs)
        grades = resources["nbgrader"]
        answers = {grade_id(cell): cell for cell in nb.cells if is_answer(cell)}
        exercises = []
        for cell in filter(_is_check, nb.cells):
            name = _exercise(grade_id(cell))
            answer = answers.get(name)
            handed_in = cell.metadata.get("verdict", {}).get("diagnosis") != NO_NOTEBOOK
            exercises.append(
                ExerciseFeedback(
                    name=name,
                    score=cell.metadata.nbgrader.score,
                    points=cell.metadata.nbgrader.points,
                    panel=_panel(cell),
                    answer=answer.source if answer and handed_in else "",
                    comment=(answer and answer.metadata.nbgrader.get("comment")) or "",
                )
            )
        html = page(
            student=grades["student"],
            assignment=grades["assignment"],
            title=_title(nb, grades["assignment"]),
            score=grades["score"],
            points=grades["max_score"],
            exercises=exercises,
        )
        return html, resources


def _panel(cell: NotebookNode) -> str:
    """The verdict's HTML; only a cell that the judge filled has one."""
    if "verdict" not in cell.metadata:
        return ""
    return next((o.data["text/html"] for o in cell.outputs if "text/html" in o.get("data", {})), "")


def _title(nb: NotebookNode, default: str) -> str:
    for cell in nb.cells:
        if cell.cell_type == "markdown" and cell.source.startswith("# "):
            return cell.source.splitlines()[0][2:].strip()
    return default


@dataclass
class FeedbackReport:
    pages: list[Path]
    problems: list[str]

    @property
    def status(self) -> int:
        return int(bool(self.problems))

    def print(self, out: Callable[[str], None] = print) -> None:
        for problem in self.problems:
            out(problem)
        where = f" in {self.pages[0].parents[2]}" if self.pages else ""
        out(f"{len(self.pages)} feedback pages{where}")


def _graded(course: Course) -> list[tuple[str, str]]:
    there = course.handed_in("autograded")
    if not there:
        where = course.root / "autograded"
        raise CourseError(f"{where}: nothing is graded yet; run `autograder grade` first")
    return there


def feedback(course: Course) -> FeedbackReport:
    """Write a page for every graded submission to feedback/, and an overview for every student."""
    graded = _graded(course)
    exporter = FeedbackExporter(config=course.config)
    exporter.register_preprocessor(GetGrades, enabled=True)
    report = FeedbackReport([], [])
    totals: dict[str, list[tuple[str, float, float]]] = {}
    for student, assignment in graded:
        source = course.notebook("autograded", student, assignment)
        target = course.notebook("feedback", student, assignment, ".html")
        try:
            resources = _resources(course, student, assignment)
            html, resources = exporter.from_filename(str(source), resources=resources)
            write_atomically(target, html.encode())
        except MissingEntry:
            report.problems.append(f"{_word(student)} {_word(assignment)}: no page: {NOT_IN_GRADEBOOK}")
            continue
        except Exception as error:
            report.problems.append(
                f"{_word(student)} {_word(assignment)}: no page: {type(error).__name__}: {visible(error, 300)}"
            )
            continue
        report.pages.append(target)
        grades = resources["nbgrader"]
        totals.setdefault(student, []).append((assignment, grades["score"], grades["max_score"]))
    for student, lessons in totals.items():
        write_atomically(
            course.root / "feedback" / student / "index.html", overview(student, lessons).encode()
        )
    return report


# -- export -----------------------------------------------------------------------------------------------


@dataclass
class ExportReport:
    grades: Path
    exercises: Path
    students: int
    status: int = 0

    def print(self, out: Callable[[str], None] = print) -> None:
        out(f"{self.students} students: totals in {self.grades}, every exercise in {self.exercises}")


def export(course: Course, folder: str | Path | None = None) -> ExportReport:
    """Write grades.csv (a line per student) and exercises.csv (a line per exercise) beside the gradebook.

    `folder` is another place for them. Text that a spreadsheet would take for a formula gets an apostrophe.
    """
    folder = Path(folder or course.root)
    _graded(course)
    with _open(course) as gradebook:
        assignments = [a for a in course.released if any(a == b.name for b in gradebook.assignments)]
        students = [student.id for student in gradebook.students]
        if not students:
            raise CourseError(f"{course.root}: its graded students are {NOT_IN_GRADEBOOK}")
        maximum = sum(gradebook.find_assignment(a).max_score for a in assignments)
        totals, details = [], []
        for student in students:
            scores = []
            for assignment in assignments:
                try:
                    submission = gradebook.find_submission(assignment, student)
                except MissingEntry:
                    scores.append("")
                    continue
                scores.append(submission.score - (submission.late_submission_penalty or 0.0))
                details += _exercise_lines(course, submission, student, assignment)
            totals.append([student, *scores, sum(s for s in scores if s != ""), maximum])
    report = ExportReport(folder / "grades.csv", folder / "exercises.csv", len(students))
    _write_csv(report.grades, ["student", *assignments, "score", "points"], totals)
    header = "student assignment exercise score points passed diagnosis reason needs_review handed_in"
    _write_csv(report.exercises, header.split(), details)
    return report


def _exercise_lines(
    course: Course, submission: SubmittedAssignment, student: str, assignment: str
) -> Iterator[list]:
    verdicts = _verdicts(course.notebook("autograded", student, assignment))
    for notebook in submission.notebooks:
        for mark in sorted(
            notebook.grades, key=lambda g: list(verdicts).index(g.name) if g.name in verdicts else -1
        ):
            verdict = verdicts.get(mark.name, {})
            yield [
                student,
                assignment,
                _exercise(mark.name),
                mark.score,
                mark.max_score,
                int(bool(verdict.get("passed"))),
                verdict.get("diagnosis") or "",
                "" if verdict.get("passed") else verdict.get("message", ""),
                int(mark.needs_manual_grade),
                submission.timestamp or "",
            ]


def _verdicts(path: Path) -> dict[str, dict]:
    """graded cell -> its verdict, in the order of the notebook; {} where nothing was graded."""
    try:
        cells = json.loads(path.read_bytes())["cells"]
    except (OSError, ValueError, KeyError):
        return {}
    return {grade_id(c): c["metadata"].get("verdict", {}) for c in cells if _is_check(c)}


def _write_csv(path: Path, header: list[str], lines: list[list]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_csv_cell(value) for value in line] for line in lines)
    write_atomically(path, text.getvalue().encode("utf-8-sig"))


def _csv_cell(value: object) -> object:
    if isinstance(value, int | float):
        return value
    text = " ".join(visible(value, 1000).split())
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠")) else text


# -- for nbgrader's own commands --------------------------------------------------------------------------


class MakeRelease(NbGraderPreprocessor):
    """What `nbgrader generate_assignment` makes of source/: the build's student notebook."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        from ..lessons import release

        return release(nb), resources


class ReleasedExporter(NotebookExporter):
    """Reads the released notebook in place of the one handed in, which no parser but ours touches."""

    def from_filename(self, filename: str, resources: dict | None = None, **kwargs) -> tuple[str, dict]:
        course = Course.open(self.parent.coursedir.root, self.parent.coursedir.db_url)
        names = resources["nbgrader"]
        names["course"] = course
        return self.from_notebook_node(nbformat.from_dict(course.released[names["assignment"]]), resources)


class TrustedVerdict(NbGraderPreprocessor):
    """Fills the notebook with the student's answers and the judge's verdicts."""

    confine = Bool(True, help="False trusts the submissions: they are not confined").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        names = resources["nbgrader"]
        course = names["course"]
        row = judge_submission(course, names["student"], names["assignment"], _shared_judge(self.confine))
        for note in row.notes:
            self.log.warning("%s", note)
        return nbformat.from_dict(row.notebook or _ungraded(course, row)), resources


@functools.cache
def _shared_judge(confine: bool) -> _SturdyJudge:
    judge = _SturdyJudge(functools.partial(_confined_judge, confine))
    atexit.register(judge.close)
    return judge
