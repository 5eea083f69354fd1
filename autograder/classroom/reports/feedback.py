"""Writes the pages of feedback/ from what was graded: verdict, points, comments and the student's own answer."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from nbgrader.api import Comment

from ...text import visible
from ...verdict import Slug
from ..course import Course, CourseError, Outcome, word
from ..duedates import spoken
from ..grading.gradebook import NOT_IN_GRADEBOOK, Marks, graded_folders, open_gradebook
from ..grading.judging import graded
from ..standing import Standing
from ..submission import answers_in, checks_in
from ..templates import document, write_page

LATE = "It was handed in late."
STALE = "Something newer was handed in after this was graded."


def feedback(course: Course, now: Standing | None = None) -> Outcome:
    """Write a page for every graded submission (`files`) to feedback/, and an overview for every student."""
    folders, report = graded_folders(course), Outcome(blame="no feedback: ")
    now = now or Standing(course)
    theirs: dict[str, dict[str, Marks]] = {}
    for student, assignment in folders:
        if (mark := now.marks.get((student, assignment))) is None:
            report.problems.append(f"{word(student)} {word(assignment)}: {NOT_IN_GRADEBOOK}")
            continue
        try:
            report.files[f"{student}/{assignment}"] = _write_page(course, now, student, assignment, mark)
            theirs.setdefault(student, {})[assignment] = mark
        except Exception as error:
            why = f"{type(error).__name__}: {visible(error, 300)}"
            report.problems.append(f"{word(student)} {word(assignment)}: {why}")
    for student, graded_now in theirs.items():
        _write_overview(course, now, student, graded_now)
    report.said.append(f"{len(report.files)} feedback pages" + f" in {course.root / 'feedback'}" * bool(report.files))
    return report


def _write_page(course: Course, now: Standing, student: str, assignment: str, marks: Marks) -> Path:
    content = course.notebook("autograded", student, assignment).read_bytes()
    page = course.notebook("feedback", student, assignment, ".html")
    notices = [LATE] * ((student, assignment) in now.late)
    if late := now.late_by.get((student, assignment)):
        due = now.rules.due(assignment) + (now.rules.extension(student, assignment) or timedelta())
        notices = [f"It was handed in {spoken(late)} late. It was due on {due.astimezone():%d %B %Y, %H:%M %Z}."]
    about = student, assignment, marks, notices + [STALE] * ((student, assignment) in now.stale)
    write_page(page, [content.decode(), repr(about)], lambda: student_page(json.loads(content), *about))
    return page


def student_page(notebook: dict, student: str, assignment: str, marks: Marks, notices: Sequence[str] = ()) -> str:
    """The HTML page about an autograded notebook. The panels are HTML of ours; the template escapes all other texts."""
    answers = {name: "".join(cell["source"]) for name, cell in answers_in(notebook).items()}
    exercises = []
    for name, _, cell in checks_in(notebook):
        verdict = cell["metadata"].get("verdict")  # only a cell that the judge filled has one
        shown = (output.get("data", {}).get("text/html") for output in cell["outputs"] if verdict is not None)
        panel = next(("".join(html) for html in shown if html), "")
        answer = "" if (verdict or {}).get("diagnosis") == Slug.NO_NOTEBOOK else answers.get(name, "")
        one = {"name": name, "panel": panel, "answer": answer, "comment": marks.comments.get(name, "")}
        exercises.append(one | {"score": marks.scores[name].score, "points": marks.scores[name].points})
    texts = ("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    title = next((text[2:].partition("\n")[0].strip() for text in texts if text.startswith("# ")), assignment)
    notices = [*notices, *([f"It came late: {marks.penalty:g} points were taken off."] if marks.penalty else [])]
    about = {"heading": title, "assignment": assignment, "student": student, "notices": notices}
    about |= {"score": marks.score, "points": marks.points, "exercises": exercises}
    return document("page.html", f"{assignment} · {student}", **about)


def _write_overview(course: Course, now: Standing, student: str, graded: dict[str, Marks]) -> None:
    """Write a student's page about all lessons: what is assigned, what else has a page, the total of what counts."""
    lessons = []
    for assignment in dict.fromkeys([*now.assigned, *graded]):
        mark = graded.get(assignment)
        score, points = (mark.score, mark.points) if mark else (0.0, course.points(assignment))
        line = {"assignment": assignment, "score": score, "points": points, "graded": bool(mark)}
        lessons.append(line | {"counts": now.counts.get(assignment, 0.0)})
    earned = round(sum(one["score"] * one["counts"] / (one["points"] or 1.0) for one in lessons), 6)
    points = sum(one["counts"] for one in lessons)
    about = {"student": student, "lessons": lessons, "score": earned, "points": points}
    page = course.root / "feedback" / student / "index.html"
    write_page(page, about, lambda: document("overview.html", f"Feedback · {student}", **about))


def comment(course: Course, exercise: str, diagnosis: str, text: str, replace: bool = False) -> Outcome:
    """Write one comment to each student whose answer to `exercise` has this diagnosis now; "" takes comments away.

    A comment that says something else stays unless `replace`. CourseError if nobody has the diagnosis.
    """
    there = {names: graded(course, *names).exercises.get(exercise) for names in graded_folders(course)}
    verdicts = {names: judged.verdict for names, judged in there.items() if judged}
    wrong = {names: str(said.get("diagnosis")) for names, said in verdicts.items() if not said.get("passed")}
    if diagnosis not in wrong.values():
        others = ", ".join(sorted(set(wrong.values()))) or "no wrong answers"
        raise CourseError(f"no answer to {word(exercise)} has the diagnosis {word(diagnosis)}; there are: {others}")
    given, kept = [], []
    with open_gradebook(course) as gradebook:
        for row in gradebook.db.query(Comment).all():
            submission = row.notebook.assignment
            student = submission.student_id
            if row.cell.name != exercise or wrong.get((student, submission.assignment.name)) != diagnosis:
                continue
            if row.manual_comment and row.manual_comment != text and not replace:
                kept.append(student)
            else:
                row.manual_comment = text or None
                given.append(student)
        gradebook.db.commit()
    others = f"have another comment, which stays (--replace takes its place): {', '.join(map(word, kept))}"
    said = f"{len(given)} comments: {', '.join(map(word, given))}"
    return Outcome([others] * bool(kept) + [said, "they are on the pages that `autograder feedback` writes next"])
