"""The whole way in one command: collect, grade, feedback, report, export, and one summary at the end."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..text import visible
from .course import Course, CourseError, Outcome, word
from .grading.grade import GradeReport, grade
from .intake.collect import collect
from .intake.sources import CollectReport
from .reports.feedback import feedback
from .reports.report import NAMED, report
from .standing import Standing, Submission, export


@dataclass
class RunReport:
    """What became of a class: the `steps` that followed, by name, and why others `failed`. What was done stays."""

    collected: CollectReport
    graded: GradeReport
    now: Standing
    steps: dict[str, Outcome] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        """0, or 1 where a person must act: a file not understood, a grade to review. To be late is no error."""
        act = self.collected.problems or self.now.waiting or self.failed or not self.graded.rows
        return int(bool(act) or any(done.status for done in (self.graded, *self.steps.values())))

    def print(self, out: Callable[[str], None] = print) -> None:
        rows = self.graded.rows
        waiting = {row.names: str(row) for row in rows if row.needs_review}
        for names, lines in self.now.waiting.items():
            waiting.setdefault(names, f"{' '.join(map(word, names))}: {visible('; '.join(lines), 300)}")
        rules = self.now.rules
        depends = {a for a in self.now.assigned if rules.due(a) and not rules.least_late(a)}  # on how late it is
        unknown = {s for s in self.now.late - set(self.now.late_by) if s[1] in depends}
        strangers = sorted(rules.students - {person.id for person in self.now.people})  # it may be a slip of the pen
        notes = [f"course.toml has rules for {word(name)}, of whom nothing is known" for name in strangers]
        for title, lines in (
            ("note", [*self.collected.notes, *notes]),
            ("not understood", self.collected.problems),
            ("needs review", waiting.values()),
            ("would change", self.graded.changes_in_words()),
            ("late", self._by_assignment(self.now.late)),
            ("late, but nothing says how late, so no points were taken off", self._by_assignment(unknown)),
            ("missing", self._by_assignment(self.now.missing)),
            ("failed", self.failed),
        ):
            for line in lines:
                out(f"{title}: {line}")
        kept = sum(row.kept for row in rows)
        counts = {
            f"graded ({kept} of them unchanged)" if kept else "graded": sum(not row.needs_review for row in rows),
            "to review": len(waiting),
            "not understood": len(self.collected.problems),
            "late": len(self.now.late),
            "missing": len(self.now.missing),
        }
        out("; ".join(f"{count} {what}" for what, count in counts.items()))
        for done in self.steps.values():
            done.print(out)

    def _by_assignment(self, group: Iterable[Submission]) -> Iterator[str]:
        for assignment in self.now.assigned:
            students = [word(person.id) for person in self.now.people if (person.id, assignment) in group]
            more = f" and {len(students) - NAMED} more (grades.csv has all)" if len(students) > NAMED else ""
            if students:
                yield f"{assignment}: {', '.join(students[:NAMED])}{more}"


def run(
    path: str | Path,
    course: Course,
    student: str = "",
    roster: str | Path | None = None,
    to: str | Path | None = None,
    **grading,
) -> RunReport:
    """Collect `path`, grade what is new, write feedback, report and CSV. The steps say parameters and errors."""
    collected = collect(path, course, student, roster)
    graded = grade(course, **grading) if course.handed_in() else GradeReport([])
    summary = RunReport(collected, graded, Standing(course))
    if graded.rows and not course.handed_in("autograded"):
        summary.failed.append("nothing could be graded, so there are no pages and no CSV")
    elif graded.rows:
        for step, arguments in ((feedback, ()), (report, ()), (export, (to,))):
            try:
                summary.steps[step.__name__] = step(course, *arguments, now=summary.now)
            except Exception as error:
                reason = str(error) if isinstance(error, CourseError) else f"{type(error).__name__}: {error}"
                summary.failed.append(f"{step.__name__}: {visible(reason, 300)}")
    return summary
