"""Whose notebook is which assignment, from the names of files and folders."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ..text import BLANK_LETTERS
from .course import Course, CourseError
from .sources import CollectReport, Found, ignored, shown
from .submission import cells_of, grade_id, is_answer

MAX_NOTEBOOKS = 100_000
LAYOUTS = (
    "one folder per student (ann/01_vector_add.ipynb), the student in the name (ann_01_vector_add.ipynb), "
    "or the zip of Moodle, Canvas, Blackboard or Brightspace"
)

# How learning-management systems name what they pack. `student` is who; `key` tells namesakes apart, and is
# part of the student's id where the system keeps it from one assignment to the next; `time` is the attempt's.
_SYSTEMS = (
    ("Moodle", False, r"(?P<student>[^/]+?)_(?P<key>\d+)_assignsubmission_[a-z]+_?(?P<file>.*)"),
    ("Canvas", True, r"(?P<student>[^\W\d_][^\W_]*)_(?:(?i:LATE)_)?(?P<key>\d+)_\d+_(?P<file>.+)"),
    (
        "Blackboard",
        False,
        r"(?P<key>.*?)_(?P<student>[^_]+)_attempt_(?P<time>\d{4}(?:-\d\d){5})_?(?P<file>.*)",
    ),
    (
        "Brightspace",
        False,
        r"(?P<key>\d+)-\d+ ?- ?(?P<student>[^/]+?) ?- ?"
        r"(?P<time>\w+ \d+, ?\d{4}(?: \d+ [AP]M)?)[ -]*(?P<file>.*)",
    ),
)
_SYSTEMS = tuple((name, stable, re.compile(pattern, re.DOTALL)) for name, stable, pattern in _SYSTEMS)
_ATTEMPT_TIMES = ("%Y-%m-%d-%H-%M-%S", "%b %d, %Y %I%M %p")
_NO_STUDENT = {"notebooks", "notebook", "submitted", "submissions", "submission", "src", "work"}
_COPY_MARK = re.compile(r"^(?:copy of\s+)+|(?:\s*\(\d+\)|[-_ ]+copy ?\d*|\s+kopie)$", re.IGNORECASE)
_NUMBER_AFTER_NAME = re.compile(r"^-\d{1,3}$")


@dataclass
class _Candidate:
    """A notebook on its way to a student. `rest` is what its name says beside the assignment.

    A system that named it gave `student` and `key`; `outside` are then the folders around that name.
    """

    found: Found
    assignment: str
    rest: str
    student: str
    key: str
    outside: tuple[str, ...]
    unclear: str = "nothing says whose"


def answers_of(course: Course) -> dict[str, set[str]]:
    """assignment -> the ids of the answers in it."""
    return {
        assignment: {grade_id(c) for c in notebook["cells"] if is_answer(c)}
        for assignment, notebook in course.released.items()
    }


def identified(
    files: Iterator[Found], assignments: dict[str, set[str]], student: str, report: CollectReport
) -> Iterator[tuple[Found, str, str]]:
    candidates, others = [], defaultdict(list)
    for found in files:
        if any(map(ignored, found.parts)):
            continue
        if not found.path.lower().endswith(".ipynb"):
            others["/".join(found.parts[:-1][:1])].append(found.path)
        elif candidate := _candidate(found, assignments, report):
            candidates.append(candidate)
        if len(candidates) > MAX_NOTEBOOKS:
            raise CourseError(f"there are more than {MAX_NOTEBOOKS} notebooks; collect in parts")
    _say_what_is_no_notebook(others, report)
    _name_students(candidates, set(assignments))
    ids = _student_ids(candidates, report)
    for c in candidates:
        who = student_id(student) if student else ids.get((c.student, c.key), "")
        if who:
            yield c.found, who, c.assignment
        else:
            report.not_understood.append(
                f"{shown(c.found.path)}: is {c.assignment}, but {c.unclear}; expected {LAYOUTS}; "
                "or say it with --student"
            )


def _say_what_is_no_notebook(others: dict[str, list[str]], report: CollectReport) -> None:
    """A line for each archive, and one for all else in a folder: it may be a copy of a whole repository."""
    for folder, paths in others.items():
        rest = []
        for path in paths:
            if path.lower().endswith((".zip", ".7z", ".gz", ".rar")):
                report.not_understood.append(f"{shown(path)}: is an archive inside; unpack it first")
            else:
                rest.append(path)
        if len(rest) == 1:
            report.not_understood.append(f"{shown(rest[0])}: is not a notebook (.ipynb)")
        elif rest:
            where = f" in {shown(folder)}/" if folder else ""
            report.not_understood.append(
                f"{shown(rest[0])} and {len(rest) - 1} more{where}: are not notebooks (.ipynb)"
            )


def _candidate(found: Found, assignments: dict[str, set[str]], report: CollectReport) -> _Candidate | None:
    *folders, name = found.parts
    at, said = _by_system(found.parts)
    stem = said["file"] if said and at == len(folders) else name
    stem = _COPY_MARK.sub("", re.sub(r"\.ipynb$", "", stem, flags=re.IGNORECASE))
    assignment, rest = _by_name(stem, assignments)
    if not assignment:
        assignment = next((a for f in reversed(folders) if (a := _by_name(f, assignments)[0])), "")
    if not assignment:
        assignment = _by_answers(found, assignments)
        if assignment:
            rest = ""
            report.notes.append(f"{shown(found.path)}: is {assignment} by its answers, not by its name")
    if not assignment:
        expected = ", ".join(assignments)
        report.not_understood.append(
            f"{shown(found.path)}: neither name nor answers say which of {expected}"
        )
        return None
    found = replace(found, modified=_attempt_time(said.get("time")) or found.modified)
    student = unicodedata.normalize("NFC", said.get("student", ""))
    return _Candidate(found, assignment, rest, student, said.get("key", ""), tuple(folders[:at]))


def _attempt_time(text: str | None) -> datetime | None:
    """The time of an attempt, by the local clock, where a system's name says it."""
    text = re.sub(r" (\d{3} [AP]M)", r" 0\1", text or "")  # 115 PM
    for form in _ATTEMPT_TIMES:
        with contextlib.suppress(ValueError, OverflowError):
            return datetime.strptime(text, form).astimezone(UTC)
    return None


def _by_system(parts: tuple[str, ...]) -> tuple[int, dict[str, str]]:
    """Which part of a path a learning-management system named, and what the name says.

    The outermost name counts: what is inside was named by the student, who may have taken another's name.
    """
    for at, part in enumerate(parts):
        for _, stable, pattern in _SYSTEMS:
            match = pattern.fullmatch(part)
            if match:
                said = match.groupdict()
                if stable:
                    said["student"] = f"{said['student']}_{said['key']}"
                return at, said
    return len(parts), {}


def _by_name(stem: str, assignments: dict[str, set[str]]) -> tuple[str, str]:
    """(assignment, what is left of the name): 01_vector_add, also as "01 vector-add" or vector_add."""
    for spelt in (lambda a: a, lambda a: re.sub(r"^\d+_", "", a)):
        for assignment in sorted(assignments, key=len, reverse=True):
            words = r"[\s_\-.]*".join(map(re.escape, spelt(assignment).split("_")))
            match = re.search(rf"(?<![^\W_]){words}(?![^\W_])", stem, re.IGNORECASE)
            if match:
                before, after = stem[: match.start()], stem[match.end() :]
                after = "" if _NUMBER_AFTER_NAME.match(after) else after
                return assignment, " ".join(filter(None, (s.strip(" _-.,") for s in (before, after))))
    return "", ""


def _by_answers(found: Found, assignments: dict[str, set[str]]) -> str:
    try:
        names = {grade_id(cell) for cell in cells_of(found.read())}
    except (ValueError, OSError):
        return ""
    matching = [a for a, answers in assignments.items() if answers & names]
    return matching[0] if len(matching) == 1 else ""


def _name_students(candidates: list[_Candidate], assignments: set[str]) -> None:
    """Fill in the student of those that no learning-management system named."""
    plain = [c for c in candidates if not c.student]
    folders = {
        id(c): [
            f
            for f in (c.outside if c.student else c.found.parts[:-1])
            if f.lower() not in _NO_STUDENT and not _by_name(f, dict.fromkeys(assignments, set()))[0]
        ]
        for c in candidates
    }
    theirs = [folders[id(c)] for c in plain]
    ends = [min(theirs), max(theirs)] if plain else []  # all that os.path.commonprefix looks at
    deepest = max(map(len, theirs), default=0)
    depth = len(os.path.commonprefix(ends))
    split = deepest > depth
    together = defaultdict(list)
    for c in plain:
        together[c.assignment].append(c.rest)
    # One folder cannot be one student's when an assignment is there twice and every name says more.
    flat = not split and all(rest for rests in together.values() for rest in rests)
    flat = flat and any(len(set(rests)) > 1 for rests in together.values())
    for c in candidates:
        mine = folders[id(c)]
        if c.student:
            # Beside folders that are students, one's files may be named as a system would name another's.
            beside = len(os.path.commonprefix([mine, *ends]))
            if len(mine) > beside and deepest > beside:
                c.unclear = f"its name says {shown(c.student)}, and its folder {shown(mine[beside])}"
                c.student = ""
        elif len(mine) > depth:
            c.student = mine[depth]
        elif mine and not split and not flat:
            c.student = mine[-1]
        else:
            c.student = c.rest
        c.student = unicodedata.normalize("NFC", c.student)


def _student_ids(candidates: list[_Candidate], report: CollectReport) -> dict[tuple[str, str], str]:
    """An id for each (student, key). Whose ids would be the same get their number or a mark in them."""
    people = defaultdict(set)
    for c in candidates:
        if c.student:
            people[student_id(c.student), c.assignment].add((c.student, c.key))
    shared = {student for (student, _), names in people.items() if len(names) > 1}
    for student in sorted(shared):
        report.notes.append(f"{student}: several people have this name; their ids end in a number or a mark")

    def own_id(name: str, key: str) -> str:
        if student_id(name) not in shared or student_id(name) == name and not key:
            return student_id(name)
        return student_id(f"{name}_{key}") if key else f"{student_id(name)}-{_mark(name, 8)}"

    return {(c.student, c.key): own_id(c.student, c.key) for c in candidates if c.student}


def student_id(name: str) -> str:
    """An id that is safe as a folder, in a URL and in a spreadsheet: blanks become "_", further changes a mark."""
    composed = re.sub(r"\s+", "_", unicodedata.normalize("NFC", name).strip())
    cleaned = re.sub(rf"[^\w.@-]|[{BLANK_LETTERS}]", "_", unicodedata.normalize("NFKC", composed))
    cleaned = re.sub(r"^[^\w]+|^_+|[.]+$", "", cleaned)[:60]
    return cleaned if cleaned == composed else f"{cleaned or 'student'}-{_mark(composed, 4)}"


def _mark(name: str, length: int) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:length]
