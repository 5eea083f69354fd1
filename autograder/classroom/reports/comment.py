"""One comment to all whose answer has one diagnosis: `autograder comment EXERCISE DIAGNOSIS "text"`."""

from __future__ import annotations

from nbgrader.api import Comment

from ..course import Course, CourseError, Outcome, word
from ..grading.gradebook import graded_folders, open_gradebook
from ..grading.record import graded


def comment(course: Course, exercise: str, diagnosis: str, text: str, replace: bool = False) -> Outcome:
    """Write `text` to each student whose answer to `exercise` has this diagnosis now; "" takes comments away.

    A comment that says something else stays unless `replace`. CourseError if nobody has the diagnosis.
    """
    found, others = {}, set()
    for student, assignment in graded_folders(course):
        judged = graded(course, student, assignment).exercises.get(exercise)
        if judged and not judged.verdict.get("passed"):
            others.add(str(judged.verdict.get("diagnosis")))
            if judged.verdict.get("diagnosis") == diagnosis:
                found[student, assignment] = exercise
    if not found:
        there = ", ".join(sorted(others)) or "no wrong answers"
        raise CourseError(f"no answer to {word(exercise)} has the diagnosis {word(diagnosis)}; there are: {there}")
    given, kept = [], []
    with open_gradebook(course) as gradebook:
        for row in gradebook.db.query(Comment).all():
            submission = row.notebook.assignment
            names = submission.student_id, submission.assignment.name
            if found.get(names) != row.cell.name:
                continue
            if row.manual_comment and row.manual_comment != text and not replace:
                kept.append(names[0])
            else:
                row.manual_comment = text or None
                given.append(names[0])
        gradebook.db.commit()
    others = f"have another comment, which stays (--replace takes its place): {', '.join(map(word, kept))}"
    said = f"{len(given)} comments: {', '.join(map(word, given))}"
    return Outcome([others] * bool(kept) + [said, "they are on the pages that `autograder feedback` writes next"])
