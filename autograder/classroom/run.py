"""The whole way in one command: collect, grade, feedback, report, export, and one summary at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..text import visible
from .course import Course, CourseError, word
from .grading.grade import GradeReport, grade
from .intake.collect import collect
from .intake.sources import CollectReport
from .reports.export import ExportReport, export
from .reports.feedback import FeedbackReport, feedback
from .reports.report import NAMED, ClassReport, report
from .standing import Standing, Submission, standing


@dataclass
class RunReport:
    """What became of a class. `graded` is None if nothing was handed in yet.

    A step that failed is None, too, and `failed` says why: nothing that was done before it is lost.
    """

    collected: CollectReport
    graded: GradeReport | None
    feedback: FeedbackReport | None
    reported: ClassReport | None
    exported: ExportReport | None
    now: Standing
    failed: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        """Exit status: 0, or 1 where a person must act: a file not understood, a grade that needs review.

        Late and missing submissions are said, and are no error.
        """
        rows = self.graded.rows if self.graded else []
        act = bool(self.graded and self.graded.status) or bool(self.feedback and self.feedback.problems)
        act = act or bool(self.collected.not_understood or self.now.waiting or self.failed)
        return int(act or not rows)

    def print(self, out: Callable[[str], None] = print) -> None:
        rows = self.graded.rows if self.graded else []
        waiting = {(row.student, row.assignment): str(row) for row in rows if row.needs_review}
        for names, lines in self.now.waiting.items():
            waiting.setdefault(names, f"{' '.join(map(word, names))}: {visible('; '.join(lines), 300)}")
        self._list(out, "note", self.collected.notes)
        self._list(out, "note", self.now.unknown_rules())
        self._list(out, "not understood", self.collected.not_understood)
        self._list(out, "needs review", waiting.values())
        if self.graded:
            self.graded.print_changes(out)
        self._list(out, "no feedback", self.feedback.problems if self.feedback else [])
        self._list(out, "late", self._by_assignment(self.now.late))
        self._list(
            out,
            "late, but nothing says how late, so no points were taken off",
            self._by_assignment({s for s in self.now.late - set(self.now.late_by) if self._depends(s[1])}),
        )
        self._list(out, "missing", self._by_assignment(self.now.missing))
        kept = sum(row.kept for row in rows)
        counts = {
            f"graded ({kept} of them unchanged)" if kept else "graded": sum(not row.needs_review for row in rows),
            "to review": len(waiting),
            "not understood": len(self.collected.not_understood),
            "late": len(self.now.late),
            "missing": len(self.now.missing),
        }
        self._list(out, "failed", self.failed)
        out("; ".join(f"{count} {what}" for what, count in counts.items()))
        if self.feedback:
            out(self.feedback.where)
        for done in filter(None, (self.reported, self.exported)):
            done.print(out)

    def _depends(self, assignment: str) -> bool:
        """Whether it matters how late an assignment is."""
        return bool(self.now.rules.due(assignment)) and not self.now.rules.least_late(assignment)

    def _by_assignment(self, group: set[Submission]) -> Iterator[str]:
        for assignment in self.now.assigned:
            students = [word(person.id) for person in self.now.people if (person.id, assignment) in group]
            more = f" and {len(students) - NAMED} more (grades.csv has all)" if len(students) > NAMED else ""
            if students:
                yield f"{assignment}: {', '.join(students[:NAMED])}{more}"

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
    graded, failed = grade(course, **grading), []
    now = standing(course)
    if not course.handed_in("autograded"):
        failed.append("nothing could be graded, so there are no pages and no CSV")
        return RunReport(collected, graded, None, None, None, now, failed)

    def done(step: Callable, *arguments):
        try:
            return step(course, *arguments, now=now)
        except Exception as error:
            reason = str(error) if isinstance(error, CourseError) else f"{type(error).__name__}: {error}"
            failed.append(f"{step.__name__}: {visible(reason, 300)}")

    return RunReport(collected, graded, done(feedback), done(report), done(export, to), now, failed)
