"""Grades back to a learning-management system: into the CSV that the system itself exported.

    autograder export --for canvas --into exported.csv

The file keeps its columns, their order and its encoding. Only the cells of graded students in the assignments'
columns are written, so that the system takes the file back.
"""

import re
import zipfile
from pathlib import Path

from ...text import visible
from ..course import Course, CourseError, Outcome, word, write_atomically
from ..grading.gradebook import graded_folders
from ..intake.identity import Lessons
from ..intake.people import ClassList, Person, Roster, Unclear, read_table
from ..intake.systems import SYSTEMS, Named
from ..standing import Standing, Submission, export

EXCUSED = "EX"
MOODLE_ZIP = "moodle-feedback.zip"


class _Table:
    """A system's file on its way: its lines, whose each is, and which column is which assignment's."""

    def __init__(self, course: Course, system: str, path: Path, said: dict[str, str]) -> None:
        """said: assignment -> the title of its column, where that does not say it."""
        self.system, self.about, self.path = system, SYSTEMS[system], path
        self.table = read_table(path, "the export")
        self.lines = self.table.lines
        self.people = self.table.people()  # of the lines below the header
        if not any(self.people):
            raise CourseError(f"{path}: names nobody; give the file that {self.about.name} exported")
        self.header, self.roster = self.lines[0], Roster([p for p in self.people if p])
        self.course, self.now, self.known = course, Standing(course), ClassList(course).people
        self.columns = self._columns(said)  # assignment -> column
        self.filled: dict[Submission, int] = {}  # -> line

    def _columns(self, said: dict[str, str]) -> dict[str, int]:
        columns, released, path = {}, self.course.released, self.path
        listed = f"there are: {', '.join(visible(title, 60) for title in self.header[:30])}"
        for assignment, title in said.items():
            if assignment not in released:
                raise CourseError(f"there is no assignment {assignment!r}; there are: {', '.join(released)}")
            # Systems write a number or the points after the title that people see.
            there = [t for t in self.header if t == title] or [t for t in self.header if t.startswith(f"{title} ")]
            if len(there) != 1:
                raise CourseError(f"{path}: has {len(there) or 'no'} columns {title!r}; {listed}")
            columns[assignment] = self.header.index(there[0])
        others, lessons = self.about.grades.get("not_scores"), Lessons(self.course)
        for at, title in enumerate(self.header):
            assignment = "" if others and re.search(others, title) else lessons.named(title)[0]
            if assignment and assignment not in columns:
                columns[assignment] = at
            elif assignment and assignment not in said:
                both = f"{self.header[columns[assignment]]!r} and {title!r}"
                raise CourseError(f"{path}: {both} may both be {assignment}; say --column '{assignment}={title}'")
        only = self.about.grades.get("only_score")  # of a file about a single assignment
        if not columns and only in self.header:
            if len(self.now.assigned) != 1:
                raise CourseError(f"{path}: is about one assignment; say which: --column '01_vector_add={only}'")
            columns[self.now.assigned[0]] = self.header.index(only)
        if not columns:
            where = f"{path}: no column is named like an assignment"
            raise CourseError(f"{where}; {listed}; say --column '01_vector_add=…'")
        return columns

    def line_of(self, person: Person, assignment: str) -> int:
        """The line of a student of the course. Raises Unclear if it is nobody's or may be several people's."""
        name, numbers = self.about.name, self.known.get(person.id, {}).get("numbers", {})
        own = numbers.get(name) or numbers.get(f"{name} {assignment}") or []
        if self.system == "canvas" and not own:
            own = [n for n in [person.numbers.get(name)] if n]
        listed = {there.numbers[name] for there in self.people if there and name in there.numbers}
        number = next((n for n in reversed(own) if n in listed), "")
        if own and listed and not number:  # who has the name here is a namesake
            raise Unclear(f"no line has the number {own[-1]}, which {name} gave")
        keys = (person.id, *sorted(person.keys), *numbers.get("Gradescope", ()), person.email)
        named = Named(name, person.name or person.id, number, identifiers=tuple(filter(None, keys)))
        found = self.roster.find(named)
        lines = [at for at, there in enumerate(self.people, 1) if there == found]
        if len(lines) != 1:
            raise Unclear(f"{word(found.id)} has {len(lines)} lines")
        return lines[0]

    def points(self, assignment: str, line: int) -> float | None:
        """How many points the system gives an assignment; None if its file does not say."""
        where, column, said = self.about.grades, self.columns[assignment], ""
        title = self.header[column]
        if "title_points" in where and (match := re.search(where["title_points"], title)):
            said = match[1]
        elif "points_line" in where:
            of_all = (row for row in self.lines if row and where["points_line"] in row[0])
            said = next((row[column] for row in of_all if column < len(row)), "")
        elif "points_column" in where:
            wanted = {where["points_column"].format(title).lower(), "max points"}
            said = next((cell for t, cell in zip(self.header, self.lines[line]) if t.lower() in wanted), "")
        try:
            return float(said.replace(",", "."))
        except ValueError:
            return None

    def fill(self, scale: bool, report: Outcome) -> None:
        name = self.about.name
        how = "scores were scaled" if scale else "scores were written as they are; --scale turns them into the others"
        for person, assignment, marks in self.now.with_marks(self.columns):
            try:
                line = self.line_of(person, assignment)
                cells, column = self.lines[line], self.columns[assignment]
                if reason := self.now.not_sure((person.id, assignment)):
                    raise Unclear(reason)
                if "".join(cells[column : column + 1]).strip().upper() == EXCUSED:
                    raise Unclear(f"is excused in {name}")
                if line in (at for (_, a), at in self.filled.items() if a == assignment):
                    raise Unclear("another student of the course has the same line")
            except Unclear as why:
                report.problems.append(f"{word(person.id)} {assignment}: {why}")
                continue
            score, points = marks.score, self.course.points(assignment)
            theirs = self.points(assignment, line)
            if theirs is not None and theirs != points:
                note = f"{assignment} has {points:g} points, and {theirs:g} in {name}: {how}"
                report.notes += [note] * (note not in report.notes)
                score *= theirs / points if scale and points else 1.0
            cells += [""] * (column + 1 - len(cells))
            cells[column] = f"{round(score, 2):g}"
            self.filled[person.id, assignment] = line

    def write_feedback(self, path: Path, report: Outcome) -> None:
        """Moodle's "Upload multiple feedback files in a zip", beside the CSV; nothing without Moodle's numbers.

        mod/assign/feedback/file/importziplib.php: name_number_assignsubmission_file is a folder, the name without "_".
        """
        pages = {}
        for names, line in self.filled.items() if "Identifier" in self.header else ():
            row = dict(zip(self.header, self.lines[line]))
            page = self.course.notebook("feedback", *names, ".html")
            if (number := re.search(r"\d+$", row["Identifier"])) and page.is_file():
                spoken = re.sub(r"[_/\\\x00-\x1f]+", " ", row.get("Full name", "")).strip(" .") or "Participant"
                pages[f"{spoken}_{number[0]}_assignsubmission_file/feedback_{page.name}"] = page
        if pages:
            report.files["pages"] = path
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, page in pages.items():
                    archive.write(page, name)
        elif self.filled and "Identifier" in self.header:
            report.notes.append("there are no feedback pages yet, so no zip of them; run `autograder feedback`")


def export_grades(
    course: Course, system: str | None, into: Path | None, to: Path | None, column: list[str], scale: bool
) -> Outcome:
    """Write grades.csv and exercises.csv, or with a `system` its own CSV. Each `column` is ASSIGNMENT=TITLE."""
    if not system:
        return export(course, to)
    if not into:
        raise CourseError(f"found no --into; give the CSV that {system} exported: --into grades.csv")
    if wrong := next((said for said in column if "=" not in said), None):
        raise CourseError(f"--column: found {wrong!r}; expected ASSIGNMENT=TITLE, such as '01_vector_add=Lab 1'")
    return export_for(course, system, into, to, columns=dict(said.split("=", 1) for said in column), scale=scale)


def export_for(
    course: Course,
    system: str,
    into: Path,
    folder: Path | None = None,
    *,
    columns: dict[str, str] | None = None,
    scale: bool = False,
) -> Outcome:
    """Fill a copy of `into`, the CSV that `system` exported, with the grades of the course.

    `columns` says which column is an assignment's (assignment -> title), where its title does not. With `scale` a
    score is turned into the column's points. A grade that a person must look at, that is stale, or whose student is
    not clear, is not written but said. Raises CourseError.
    """
    graded_folders(course)
    theirs = _Table(course, system, into, columns or {})
    path = (folder or course.root) / f"{system}{into.suffix}"
    if path.resolve() == into.resolve():
        path = path.with_name(f"{system}-filled{into.suffix}")
    report = Outcome(files={"table": path}, blame="not written: ")
    theirs.fill(scale, report)
    write_atomically(path, theirs.table.content())
    if system == "moodle":
        theirs.write_feedback(path.with_name(MOODLE_ZIP), report)
    pages = f", feedback in {report.files['pages']}" if "pages" in report.files else ""
    report.said.append(f"{len(theirs.filled)} grades in {path}{pages}")
    if not theirs.filled and not report.problems:
        report.problems.append("nobody of the course has a grade for these columns")
    return report
