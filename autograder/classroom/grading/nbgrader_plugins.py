"""The classes that nbgrader's own commands, and formgrader, load. `course.configure` names them.

No cell of a student is executed by nbgrader: ReleasedExporter and TrustedVerdict stand where it would.
"""

import atexit
import functools

import nbformat
from nbconvert.exporters import Exporter, NotebookExporter
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool
from traitlets.config import Configurable

from ..course import Course
from ..reports.feedback import student_page
from .gradebook import Lateness, marks_in, open_gradebook, save_grades
from .judging import judge_submission, ungraded


class MakeRelease(NbGraderPreprocessor):
    """What `nbgrader generate_assignment` makes of source/: the build's student notebook."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        from ...lessons import release

        return release(nb), resources


class ReleasedExporter(NotebookExporter):
    """Reads the released notebook in place of the one handed in, which no parser but ours touches."""

    def from_filename(self, filename: str, resources: dict | None = None, **kwargs) -> tuple[str, dict]:
        names = resources["nbgrader"]
        names["course"] = course = _course_of(self)
        return self.from_notebook_node(nbformat.from_dict(course.released[names["assignment"]]), resources)


class TrustedVerdict(NbGraderPreprocessor):
    """Fills the notebook with the student's answers and the verdicts; writes grades and penalties to the gradebook."""

    confine = Bool(True, help="False trusts the submissions: they are not confined").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        names, course = resources["nbgrader"], resources["nbgrader"]["course"]
        row = judge_submission(course, names["student"], names["assignment"], _shared_judge(self.confine))
        for note in row.notes:
            self.log.warning("%s", note)
        notebook = row.notebook or ungraded(course, row)
        with open_gradebook(course) as gradebook:
            save_grades(course, gradebook, Lateness(course), row, notebook)
        return nbformat.from_dict(notebook), resources


@functools.cache
def _shared_judge(confine: bool):
    from ...judge import Judge
    from ...judge.pool import SturdyJudge

    judge = SturdyJudge(functools.partial(Judge, confine))
    atexit.register(judge.close)
    return judge


class FeedbackExporter(Exporter):
    """What `nbgrader generate_feedback` calls: the same page, without notices."""

    file_extension = ".html"
    output_mimetype = "text/html"

    def from_notebook_node(self, nb: NotebookNode, resources: dict | None = None, **kwargs) -> tuple[str, dict]:
        nb, resources = super().from_notebook_node(nb, resources, **kwargs)
        names = resources["nbgrader"]
        with open_gradebook(_course_of(self)) as gradebook:
            marks = marks_in(gradebook, names["student"])[names["student"], names["assignment"]]
        return student_page(nb, names["student"], names["assignment"], marks), resources


def _course_of(plugin: Configurable) -> Course:
    """The course of the command that a plug-in is inside of."""
    while not hasattr(plugin, "coursedir"):
        plugin = plugin.parent
    return Course.open(plugin.coursedir.root, plugin.coursedir.db_url)
