"""Grades back to a learning-management system: into the CSV that the system itself exported.

    autograder export --for canvas --into exported.csv

The file keeps its columns, their order and its encoding. Only the cells of graded students in the assignments'
columns are written, so that the system takes the file back.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...text import visible
from ..course import Course, CourseError, Outcome, word, write_atomically
from ..grading.gradebook import Marks, graded_folders, marks_in, open_gradebook
from ..intake.identity import Lessons
from ..intake.people import ClassList, Person, Roster, Table, Unclear, people_of, read_table, refuse_translated
from ..intake.systems import Named
from ..standing import Standing, Submission, standing


@dataclass(frozen=True)
class _System:
    """A system's name, and where its CSV says how many points a column has: in its title, in a line, in a column."""

    name: str
    title_points: str = ""
    points_line: str = ""
    points_column: str = ""
    not_scores: str = ""


SYSTEMS = {
    # canvas-lms, lib/gradebook_importer.rb: the title ends in the assignment's number; EX is an excused student.
    "canvas": _System("Canvas", points_line="Points Possible"),
    # mod/assign/feedback/offline/importgradeslib.php: Identifier, Grade and "Last modified (grade)" are read again.
    "moodle": _System("Moodle", points_column="Maximum Grade"),
    # library.blackboard.com, "Uploading or Downloading Grade Center Items": user name and column number are keys.
    "blackboard": _System("Blackboard", title_points=r"\[Total Pts: ?(?:up to )?(\d+(?:[.,]\d+)?)"),
    # community.d2l.com, "Importing grades": the title ends in "Points Grade".
    "brightspace": _System(
        "Brightspace",
        title_points=r"MaxPoints: ?(\d+(?:[.,]\d+)?)",
        not_scores=r"(?:Text Grade|Grade Symbol|Subtotal|Weighted)",
    ),
    # What "Download Grades" gives (github.com/cs161-staff/grades-py lists its columns). Gradescope itself reads scores
    # from its autograder only, as far as its documents say: `autograder gradescope`.
    "gradescope": _System(
        "Gradescope",
        points_column="{} - Max Points",
        not_scores=r" - (?:Max Points|Submission Time|Lateness|Submission ID)",
    ),
}
EXCUSED = "EX"
MOODLE_ZIP = "moodle-feedback.zip"
ONLY_SCORE = {"moodle": "Grade", "gradescope": "Total Score"}  # a file about a single assignment


@dataclass
class _Target:
    """A file of a system on its way: its lines, and whose each is."""

    system: str
    table: Table
    people: list[Person | None]  # of the lines below the header
    roster: Roster
    columns: dict[str, int]  # assignment -> column

    def line_of(self, person: Person, known: dict, assignment: str) -> int:
        """The line of a student of the course. Raises Unclear if it is nobody's or may be several people's."""
        name = SYSTEMS[self.system].name
        numbers = known.get("numbers", {})
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
        header, lines, column = self.table.lines[0], self.table.lines, self.columns[assignment]
        about = SYSTEMS[self.system]
        said = ""
        if about.title_points and (match := re.search(about.title_points, header[column])):
            said = match[1]
        elif about.points_line:
            said = next((row[column] for row in lines if row and about.points_line in row[0] and column < len(row)), "")
        elif about.points_column:
            titles = [t.lower() for t in header]
            wanted = {about.points_column.format(header[column]).lower(), "max points"}
            said = next((lines[line][at] for at, t in enumerate(titles) if t in wanted and at < len(lines[line])), "")
        try:
            return float(said.replace(",", "."))
        except ValueError:
            return None


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
    table = read_table(into, "the export")
    refuse_translated(into, table.lines)
    people = people_of(table.lines)
    if not any(people):
        raise CourseError(f"{into}: names nobody; give the file that {SYSTEMS[system].name} exported")
    now = standing(course)
    target = _Target(system, table, people, Roster([p for p in people if p]), {})
    target.columns = _columns(target, course, now, into, columns or {})
    path = (folder or course.root) / f"{system}{into.suffix}"
    if path.resolve() == into.resolve():
        path = path.with_name(f"{system}-filled{into.suffix}")
    with open_gradebook(course) as gradebook:
        marks = marks_in(gradebook)
    report = Outcome(files={"table": path}, blame="not written: ")
    filled = _fill(target, course, marks, now, scale, report)
    write_atomically(path, table.content())
    if system == "moodle":
        _write_feedback_zip(target, course, filled, report)
    pages = f", feedback in {report.files['pages']}" if "pages" in report.files else ""
    report.said.append(f"{len(filled)} grades in {path}{pages}")
    if not filled and not report.problems:
        report.problems.append("nobody of the course has a grade for these columns")
    return report


def _columns(target: _Target, course: Course, now: Standing, into: Path, said: dict[str, str]) -> dict[str, int]:
    """assignment -> its column in the file."""
    header = target.table.lines[0]
    columns = {}
    for assignment, title in said.items():
        if assignment not in course.released:
            raise CourseError(f"there is no assignment {assignment!r}; there are: {', '.join(course.released)}")
        # Systems write a number or the points after the title that people see.
        there = [t for t in header if t == title] or [t for t in header if t.startswith(f"{title} ")]
        if len(there) != 1:
            raise CourseError(f"{into}: has {len(there) or 'no'} columns {title!r}; there are: {_listed(header)}")
        columns[assignment] = header.index(there[0])
    others, lessons = SYSTEMS[target.system].not_scores, Lessons(course)
    for at, title in enumerate(header):
        assignment = "" if others and re.search(others, title) else lessons.named(title)[0]
        if assignment and assignment not in columns and assignment not in said:
            columns[assignment] = at
        elif assignment and assignment not in said:
            both = f"{header[columns[assignment]]!r} and {title!r}"
            raise CourseError(f"{into}: {both} may both be {assignment}; say --column '{assignment}={title}'")
    only = ONLY_SCORE.get(target.system)
    if not columns and only in header:
        if len(now.assigned) != 1:
            raise CourseError(f"{into}: is about one assignment; say which: --column '01_vector_add={only}'")
        columns[now.assigned[0]] = header.index(only)
    if not columns:
        there = f"there are: {_listed(header)}"
        raise CourseError(f"{into}: no column is named like an assignment; {there}; say --column '01_vector_add=…'")
    return columns


def _listed(header: list[str]) -> str:
    return ", ".join(visible(title, 60) for title in header[:30])


def _fill(
    target: _Target, course: Course, marks: dict[Submission, Marks], now: Standing, scale: bool, report: Outcome
) -> dict[Submission, int]:
    """Write the grades into the lines; (student, assignment) -> line of those that were written."""
    known, filled, other_points = ClassList(course).people, {}, {}
    for person, assignment in ((p, a) for p in now.people for a in target.columns if (p.id, a) in marks):
        who = f"{word(person.id)} {assignment}"
        try:
            line = target.line_of(person, known.get(person.id, {}), assignment)
        except Unclear as unclear:
            report.problems.append(f"{who}: {unclear}")
            continue
        if reason := now.not_sure((person.id, assignment)):
            report.problems.append(f"{who}: {reason}")
        elif _cell(target, line, assignment).strip().upper() == EXCUSED:
            report.problems.append(f"{who}: is excused in {SYSTEMS[target.system].name}")
        elif line in (at for (_, a), at in filled.items() if a == assignment):
            report.problems.append(f"{who}: another student of the course has the same line")
        else:
            score, points = marks[person.id, assignment].score, course.points(assignment)
            there = target.points(assignment, line)
            if there is not None and there != points:
                other_points[assignment] = there
                score *= there / points if scale and points else 1.0
            cells = target.table.lines[line]
            cells += [""] * (target.columns[assignment] + 1 - len(cells))
            cells[target.columns[assignment]] = f"{round(score, 2):g}"
            filled[person.id, assignment] = line
    for assignment, there in other_points.items():
        name = SYSTEMS[target.system].name
        how = "scores were scaled" if scale else "scores were written as they are; --scale turns them into the others"
        report.notes.append(f"{assignment} has {course.points(assignment):g} points, and {there:g} in {name}: {how}")
    return filled


def _cell(target: _Target, line: int, assignment: str) -> str:
    cells, column = target.table.lines[line], target.columns[assignment]
    return cells[column] if column < len(cells) else ""


def _write_feedback_zip(target: _Target, course: Course, filled: dict[Submission, int], report: Outcome) -> None:
    """Moodle's "Upload multiple feedback files in a zip", `pages`, beside the CSV; nothing without Moodle's numbers.

    mod/assign/feedback/file/importziplib.php: a folder is `name_number_assignsubmission_file`, the name without "_".
    """
    header = target.table.lines[0]
    if "Identifier" not in header or not filled:
        return
    pages = [
        (page, f"{folder}/feedback_{page.name}")
        for names, folder in _folders(header, target.table.lines, filled)
        if (page := course.notebook("feedback", *names, ".html")).is_file()
    ]
    if not pages:
        report.notes.append("there are no feedback pages yet, so no zip of them; run `autograder feedback`")
        return
    report.files["pages"] = report.files["table"].with_name(MOODLE_ZIP)
    with zipfile.ZipFile(report.files["pages"], "w", zipfile.ZIP_DEFLATED) as archive:
        for page, name in pages:
            archive.write(page, name)


def _folders(header: list[str], lines: list[list[str]], filled: dict) -> Iterator[tuple[tuple[str, str], str]]:
    number, name = header.index("Identifier"), header.index("Full name") if "Full name" in header else -1
    for names, line in filled.items():
        if digits := re.search(r"\d+$", lines[line][number]):
            spoken = lines[line][name] if name >= 0 else "Participant"
            clean = re.sub(r"[_/\\\x00-\x1f]+", " ", spoken).strip(" .") or "Participant"
            yield names, f"{clean}_{digits[0]}_assignsubmission_file"
