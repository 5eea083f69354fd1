"""The whole way in one command: collect, grade, feedback, report, export, and one summary at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .collect import collect
from .course import Course, word
from .export import ExportReport, export
from .feedback import FeedbackReport, feedback
from .grade import GradeReport, grade
from .report import ClassReport, report
from .sources import CollectReport
from .standing import Standing, Submission, standing


@dataclass
class RunReport:
    """What became of a class. `graded` is None where nothing was handed in yet."""

    collected: CollectReport
    graded: GradeReport | None
    feedback: FeedbackReport | None
    reported: ClassReport | None
    exported: ExportReport | None
    now: Standing

    @property
    def status(self) -> int:
        """Exit status: 0, or 1 where a person must act: a file not understood, a grade that needs review.

        Late and missing submissions are said, and are no error.
        """
        rows = self.graded.rows if self.graded else []
        failed = bool(self.graded and self.graded.status)
        return int(failed or not rows or bool(self.collected.not_understood) or bool(self.feedback.problems))

    def print(self, out: Callable[[str], None] = print) -> None:
        rows = self.graded.rows if self.graded else []
        failed = [row for row in rows if row.needs_review]
        self._list(out, "note", self.collected.notes)
        self._list(out, "note", self.now.unknown_rules())
        self._list(out, "not understood", self.collected.not_understood)
        self._list(out, "needs review", map(str, failed))
        if self.graded:
            self.graded.print_changes(out)
        self._list(out, "no feedback", self.feedback.problems if self.feedback else [])
        self._list(out, "late", self._by_assignment(self.now.late))
        self._list(
            out,
            "late, but nothing says how late, so no points were taken off",
            self._by_assignment({s for s in self.now.late - set(self.now.late_by) if self.now.rules.due(s[1])}),
        )
        self._list(out, "missing", self._by_assignment(self.now.missing))
        kept = sum(row.kept for row in rows)
        counts = {
            f"graded ({kept} of them unchanged)" if kept else "graded": len(rows) - len(failed),
            "to review": len(failed),
            "not understood": len(self.collected.not_understood),
            "late": len(self.now.late),
            "missing": len(self.now.missing),
        }
        out("; ".join(f"{count} {what}" for what, count in counts.items()))
        if rows:
            out(self.feedback.where)
            self.reported.print(out)
            self.exported.print(out)

    def _by_assignment(self, group: set[Submission]) -> Iterator[str]:
        for assignment in self.now.assigned:
            students = [word(person.id) for person in self.now.people if (person.id, assignment) in group]
            if students:
                yield f"{assignment}: {', '.join(students)}"

    @staticmethod
    def _list(out: Callable[[str], None], title: str, lines: Iterable[str]) -> None:
        for line in lines:
            out(f"{title}: {line}")


def run(
    source: str | Path,
    course: Course,
    student: str = "",
    roster: str | Path | None = None,
    to: str | Path | None = None,
    **grading,
) -> RunReport:
    """Collect `source`, grade what is new or changed, and write feedback, report and CSV. A bad file stops nothing.

    The parameters are those of `collect` and `export`; `grading` goes to `grade`. Raises CourseError and CannotJudge
    as they do.
    """
    return finish(collect(source, course, student, roster), course, to, **grading)


def finish(collected: CollectReport, course: Course, to: str | Path | None = None, **grading) -> RunReport:
    """The rest of `run`, after collecting."""
    if not course.handed_in():
        return RunReport(collected, None, None, None, None, standing(course))
    graded = grade(course, **grading)
    pages = feedback(course)
    return RunReport(collected, graded, pages, report(course), export(course, to), standing(course))
