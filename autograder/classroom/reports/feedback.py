"""Writes the pages of feedback/ from what was graded: verdict, points and the student's own answer."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from datetime import timedelta
from pathlib import Path

from nbconvert.exporters import Exporter
from nbformat import NotebookNode

from ...text import visible
from .. import templates
from ..course import Course, Outcome, word, write_atomically
from ..duedates import spoken
from ..grading.gradebook import NOT_IN_GRADEBOOK, Marks, graded_folders, marks_in, open_gradebook
from ..grading.record import file_hash, hash_of
from ..standing import Standing, standing
from ..submission import NO_NOTEBOOK, answers_in, checks_in, grade_id
from ..templates import document

LATE = "It was handed in late."
STALE = "Something newer was handed in after this was graded."


def feedback(course: Course, now: Standing | None = None) -> Outcome:
    """Write a page for every graded submission to feedback/, and an overview for every student.

    now: how the class stands, where that is known already. `files` has the pages of submissions.
    """
    graded = graded_folders(course)
    now = now or standing(course)
    report = Outcome(blame="no feedback: ")
    theirs: dict[str, dict[str, Marks]] = {}
    for student, assignment in graded:
        source = course.notebook("autograded", student, assignment)
        target = course.notebook("feedback", student, assignment, ".html")
        mark, notices = now.marks.get((student, assignment)), _notices(now, student, assignment)
        if mark is None:
            report.problems.append(f"{word(student)} {word(assignment)}: {NOT_IN_GRADEBOOK}")
            continue
        try:
            content = source.read_bytes()
            made_of = hash_of([_program(), content.decode(), student, assignment, repr(astuple(mark)), notices])
            if not _says(target, made_of):
                html = student_page(json.loads(content), student, assignment, mark, notices)
                write_atomically(target, html.replace("<head>", f"<head><!-- {made_of} -->", 1).encode())
        except Exception as error:
            why = f"{type(error).__name__}: {visible(error, 300)}"
            report.problems.append(f"{word(student)} {word(assignment)}: {why}")
            continue
        report.files[f"{student}/{assignment}"] = target
        theirs.setdefault(student, {})[assignment] = mark
    for student, graded_now in theirs.items():
        html = _overview(course, now, student, graded_now)
        write_atomically(course.root / "feedback" / student / "index.html", html.encode())
    report.said.append(f"{len(report.files)} feedback pages" + f" in {course.root / 'feedback'}" * bool(report.files))
    return report


def _says(page: Path, made_of: str) -> bool:
    """Whether there is a page that was made of the same."""
    try:
        with page.open(errors="replace") as file:
            return made_of in file.read(400)
    except OSError:
        return False


@functools.cache
def _program() -> str:
    """Changes with what makes a page."""
    files = [Path(__file__)]
    files += sorted(path for path in Path(templates.__file__).parent.iterdir() if path.is_file())
    return hash_of([file_hash(path) for path in files])


def _notices(now: Standing, student: str, assignment: str) -> list[str]:
    """What a student's page says beside the grade."""
    late = now.late_by.get((student, assignment))
    said = []
    if late:
        due = now.rules.due(assignment) + (now.rules.extension(student, assignment) or timedelta())
        said.append(f"It was handed in {spoken(late)} late. It was due on {due.astimezone():%d %B %Y, %H:%M %Z}.")
    elif (student, assignment) in now.late:
        said.append(LATE)
    return said + [STALE] * ((student, assignment) in now.stale)


def student_page(notebook: dict, student: str, assignment: str, marks: Marks, notices: Sequence[str] = ()) -> str:
    """The HTML page about an autograded notebook."""
    return document(
        "page.html",
        f"{assignment} · {student}",
        heading=_title(notebook, assignment),
        assignment=assignment,
        student=student,
        score=marks.score,
        points=marks.points,
        notices=[*notices, *([f"It came late: {marks.penalty:g} points were taken off."] if marks.penalty else [])],
        exercises=list(_exercises(notebook, marks)),
    )


def _exercises(notebook: dict, marks: Marks) -> Iterator[dict]:
    """What a page says of each exercise. The panel is HTML of ours; all other texts are escaped in the template."""
    answers = {name: "".join(cell["source"]) for name, cell in answers_in(notebook).items()}
    for name, _, cell in checks_in(notebook):
        score, points, _ = marks.scores[grade_id(cell)]
        verdict = cell["metadata"].get("verdict")  # only a cell that the judge filled has one
        shown = (output.get("data", {}).get("text/html") for output in cell["outputs"] if verdict is not None)
        yield {
            "name": name,
            "score": score,
            "points": points,
            "panel": next(("".join(html) for html in shown if html), ""),
            "answer": "" if (verdict or {}).get("diagnosis") == NO_NOTEBOOK else answers.get(name, ""),
            "comment": marks.comments.get(name, ""),
        }


def _title(notebook: dict, default: str) -> str:
    for cell in notebook["cells"]:
        lines = "".join(cell["source"]).splitlines()
        if cell["cell_type"] == "markdown" and lines and lines[0].startswith("# "):
            return lines[0][2:].strip()
    return default


def _overview(course: Course, now: Standing, student: str, graded: dict[str, Marks]) -> str:
    """A student's page about all lessons: what is assigned, what else has a page, and the total of what counts."""
    lessons = []
    for assignment in dict.fromkeys([*now.assigned, *graded]):
        mark = graded.get(assignment)
        score, points = (mark.score, mark.points) if mark else (0.0, course.points(assignment))
        counts = now.rules.weight(assignment, points) if assignment in now.assigned else 0.0
        line = {"assignment": assignment, "score": score, "points": points, "counts": counts, "graded": bool(mark)}
        lessons.append(line)
    earned = round(sum(one["score"] * one["counts"] / (one["points"] or 1.0) for one in lessons), 6)
    points = sum(one["counts"] for one in lessons)
    about = {"student": student, "lessons": lessons, "score": earned, "points": points}
    return document("overview.html", f"Feedback · {student}", **about)


class FeedbackExporter(Exporter):
    """What `nbgrader generate_feedback` calls: the same page, without notices."""

    file_extension = ".html"
    output_mimetype = "text/html"

    def from_notebook_node(self, nb: NotebookNode, resources: dict | None = None, **kwargs) -> tuple[str, dict]:
        nb, resources = super().from_notebook_node(nb, resources, **kwargs)
        names, coursedir = resources["nbgrader"], self.parent.coursedir
        with open_gradebook(Course.open(coursedir.root, coursedir.db_url)) as gradebook:
            marks = marks_in(gradebook, names["student"])[names["student"], names["assignment"]]
        return student_page(nb, names["student"], names["assignment"], marks), resources
