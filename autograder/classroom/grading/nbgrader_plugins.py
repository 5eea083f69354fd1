"""The classes that nbgrader's own commands, and formgrader, load. `course.configure` names them.

No cell of a student is executed by nbgrader: ReleasedExporter and TrustedVerdict stand where it would.
"""

from __future__ import annotations

import atexit
import functools
from datetime import timedelta

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbgrader.api import Grade
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.preprocessors import AssignLatePenalties, NbGraderPreprocessor, SaveAutoGrades
from nbgrader.utils import determine_grade
from traitlets import Bool

from ...verdict import GRADER_ERROR
from ..course import Course
from ..duedates import Rules
from ..submission import NO_NOTEBOOK, REVIEW, grade_id


class MakeRelease(NbGraderPreprocessor):
    """What `nbgrader generate_assignment` makes of source/: the build's student notebook."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        from ...lessons import release

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
        from .judging import judge_submission, ungraded

        row = judge_submission(course, names["student"], names["assignment"], _shared_judge(self.confine))
        for note in row.notes:
            self.log.warning("%s", note)
        return nbformat.from_dict(row.notebook or ungraded(course, row)), resources


@functools.cache
def _shared_judge(confine: bool):
    from ...judge import Judge
    from ...judge.pool import SturdyJudge

    judge = SturdyJudge(functools.partial(Judge, confine))
    atexit.register(judge.close)
    return judge


class SaveVerdicts(SaveAutoGrades):
    """nbgrader's SaveAutoGrades, which also asks for a person where a verdict does."""

    def _add_comment(self, cell: NotebookNode, resources: dict) -> None:
        """Not nbgrader's "No response." either: the verdict says it, and a comment is a person's."""

    def _add_score(self, cell: NotebookNode, resources: dict) -> None:
        where = resources["nbgrader"]
        grade = self.gradebook.find_grade(grade_id(cell), where["notebook"], where["assignment"], where["student"])
        write_grade(grade, cell)
        self.gradebook.db.commit()


def write_grade(grade: Grade, cell: NotebookNode, same_answer: bool = False) -> None:
    """Put the verdict in a check cell into its row of the database. A person's grade stays.

    It is asked for again where the answer is not the one that the person saw. `needs_manual_grade` is where it is
    kept that somebody must decide; `gradebook.waiting` reads it.
    """
    slug = cell.metadata.verdict["diagnosis"]
    failed = slug in (NO_NOTEBOOK, GRADER_ERROR)
    score, _ = determine_grade(cell)
    grade.auto_score = None if slug == GRADER_ERROR else 0.0 if failed else score
    if grade.manual_score is None:
        grade.needs_manual_grade = failed or grade.auto_score is None or bool(cell.metadata.get(REVIEW))
    elif not same_answer:
        grade.needs_manual_grade = True


class DueDates(LateSubmissionPlugin):
    """Takes off what course.toml says; nbgrader's own way (`penalty_method`) where it says nothing."""

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        assignment, late = self.parent.assignment_id, timedelta(seconds=total_seconds_late)
        said = self._rules.penalty(assignment, self._course.points(assignment), late)
        return super().late_submission_penalty(student_id, score, total_seconds_late) if said is None else said

    @functools.cached_property
    def _course(self) -> Course:
        return _course_of(self.parent)

    @functools.cached_property
    def _rules(self) -> Rules:
        return self._course.rules()


def _course_of(assign: AssignLatePenalties) -> Course:
    """The course of a preprocessor: ours says it, nbgrader's is inside of a command that has a directory."""
    above = assign
    while above is not None and not hasattr(above, "course") and not hasattr(above, "coursedir"):
        above = above.parent
    return above.course if hasattr(above, "course") else Course.open(above.coursedir.root, above.coursedir.db_url)
