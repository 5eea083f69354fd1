"""Finds whose notebook is which assignment in a folder or a zip, and copies it to where it is graded.

Nothing is unpacked by the name it came with: every file goes to submitted/<student>/<assignment>/ under names
made here, so a name such as ../../x can only be refused, never followed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from ..text import BLANK_LETTERS, visible
from .course import Course, CourseError, write_atomically
from .submission import MAX_NOTEBOOK_BYTES, cells_of, grade_id, is_answer

MAX_NOTEBOOKS = 100_000
MAX_NAME = 1000  # characters of a path in a zip
MAX_RATIO = 200  # a notebook compresses about tenfold
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
_IGNORED = {"__MACOSX", "Thumbs.db", "timestamp.txt", "submission_secret.txt"}  # and what begins with a dot
_NO_STUDENT = {"notebooks", "notebook", "submitted", "submissions", "submission", "src", "work"}
_MINUTES = "%Y-%m-%d %H:%M"
_COPY_MARK = re.compile(r"^(?:copy of\s+)+|(?:\s*\(\d+\)|[-_ ]+copy ?\d*|\s+kopie)$", re.IGNORECASE)
_NUMBER_AFTER_NAME = re.compile(r"^-\d{1,3}$")


@dataclass(frozen=True)
class Found:
    """A file among what was handed in. `read` gives its bytes, at most MAX_NOTEBOOK_BYTES, or ValueError."""

    path: str
    modified: datetime
    read: Callable[[], bytes] = field(repr=False, compare=False)

    @property
    def parts(self) -> tuple[str, ...]:
        return PurePosixPath(self.path).parts


@dataclass
class CollectReport:
    """What became of every file: `collected` (student, assignment, path), the rest as lines to read."""

    collected: list[tuple[str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    not_understood: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        """Exit status: 0, or 1 where a file was not understood."""
        return 1 if self.not_understood or not self.collected else 0

    def print(self, out: Callable[[str], None] = print) -> None:
        students = sorted({student for student, _, _ in self.collected})
        out(f"collected {len(self.collected)} notebooks of {len(students)} students")
        for student, assignment, path in sorted(self.collected):
            out(f"  {student:<24} {assignment:<20} from {path}")
        for title, lines in (("note", self.notes), ("not understood", self.not_understood)):
            for line in lines:
                out(f"{title}: {line}")


def collect(path: str | Path, course: Course, student: str = "") -> CollectReport:
    """Copy the notebooks in the folder or zip `path` to submitted/<student>/<assignment>/ of the course.

    `student` says whose notebooks these are, where no name says it. Of several notebooks of one student for
    one assignment the latest is taken. A new course is made first. CourseError when `path` is neither
    folder, nor zip, nor notebook.
    """
    report = CollectReport()
    copies: dict[tuple[str, str], list[Found]] = defaultdict(list)
    with _files(Path(path), course.root, report) as files:
        course.create()
        for found, who, assignment in _identified(files, _answers(course), student, report):
            copies[who, assignment].append(found)
        for (who, assignment), there in copies.items():
            latest = _latest(who, assignment, there, report)
            if latest and _store(course, who, assignment, *latest, report):
                report.collected.append((who, assignment, _shown(latest[0].path)))
    return report


def _latest(
    who: str, assignment: str, copies: list[Found], report: CollectReport
) -> tuple[Found, bytes] | None:
    """The latest copy that can be read, with its content."""
    older = sorted(copies, key=_recency)
    while older:
        latest = older.pop()
        try:
            content = latest.read()
        except (ValueError, OSError) as error:
            report.not_understood.append(f"{_shown(latest.path)}: {visible(error, 300)}")
            continue
        if older:
            others = ", ".join(f"{_shown(o.path)} of {o.modified:{_MINUTES}}" for o in older[-3:])
            more = f" and {len(older) - 3} more" if len(older) > 3 else ""
            report.notes.append(
                f"{who} handed in {assignment} {len(older) + 1} times: took {_shown(latest.path)} of "
                f"{latest.modified:{_MINUTES}}, not {others}{more}"
            )
        return latest, content
    return None


def _recency(found: Found) -> tuple[datetime, int]:
    """Orders the copies of one notebook: by time, then by the number a browser or system appended."""
    number = re.search(r"(?:\((\d+)\)|-(\d+))\.ipynb$", found.path)
    return found.modified, int(number[1] or number[2]) if number else 0


# -- what is there ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _files(path: Path, course: Path, report: CollectReport) -> Iterator[Iterator[Found]]:
    """What is in a folder or a zip, which stays open as long as something of it may be read."""
    if path.is_dir():
        yield _files_of_folder(path.resolve(), course, report)
    elif path.suffix.lower() == ".ipynb" and path.is_file():
        yield iter([_file(path, path.name)])
    elif not path.is_file():
        raise CourseError(f"{path}: there is nothing there; give a folder, a zip or a notebook")
    elif not zipfile.is_zipfile(path):
        raise CourseError(f"{path}: is neither a folder, nor a zip, nor an .ipynb file")
    else:
        try:
            archive = zipfile.ZipFile(path)
        except Exception as error:  # damaged bytes raise many kinds
            raise CourseError(f"{path}: is a damaged zip: {visible(error, 200)}") from None
        with archive:
            yield _files_of_zip(path, archive, report)


def _files_of_folder(root: Path, course: Path, report: CollectReport) -> Iterator[Found]:
    """The files in a folder, but for a course directory inside: what is in there was collected before."""

    def unreadable(error: OSError) -> None:
        report.not_understood.append(f"{_shown(error.filename)}: cannot be opened: {error.strerror}")

    for folder, subfolders, names in os.walk(root, onerror=unreadable):
        subfolders[:] = sorted(s for s in subfolders if not _ignored(s) and Path(folder, s) != course)
        for path in (Path(folder, name) for name in sorted(subfolders + names)):
            name = path.relative_to(root).as_posix()
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                report.not_understood.append(f"{_shown(name)}: is a symbolic link; not followed")
            elif stat.S_ISREG(mode):
                yield _file(path, name)


def _ignored(name: str) -> bool:
    return name.startswith(".") or name in _IGNORED


def _file(path: Path, name: str) -> Found:
    def read() -> bytes:
        with path.open("rb") as file:
            return _within_limit(file.read(MAX_NOTEBOOK_BYTES + 1))

    return Found(name, _changed(path), read)


def _changed(path: Path) -> datetime:
    """When the file was changed; now, where it says a year that no calendar has."""
    try:
        return datetime.fromtimestamp(path.lstat().st_mtime, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.now(UTC)


def _files_of_zip(path: Path, archive: zipfile.ZipFile, report: CollectReport) -> Iterator[Found]:
    packed = _changed(path)
    for entry in archive.infolist():
        name = entry.filename.replace("\\", "/")
        if name.endswith("/"):
            continue
        refusal = _refusal(entry, name)
        if refusal:
            report.not_understood.append(f"{_shown(name)}: {refusal}")
        else:
            yield Found(name, _zip_time(entry, packed), lambda e=entry: _unpacked(archive, e))


def _refusal(entry: zipfile.ZipInfo, name: str) -> str | None:
    parts = PurePosixPath(name).parts
    if not parts:
        return "its name is empty; refused"
    if len(name) > MAX_NAME:
        return f"its name has {len(name)} characters; refused"
    if name.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:", name):
        return "its name points outside the zip; refused"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "is a symbolic link; not followed"
    if entry.flag_bits & 0x1:
        return "is encrypted; unpack it with its password first"
    if entry.file_size > MAX_NOTEBOOK_BYTES and entry.file_size > MAX_RATIO * max(entry.compress_size, 1):
        return f"would unpack to {entry.file_size >> 20} MB from {entry.compress_size} bytes; refused"
    return None


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    try:
        with archive.open(entry) as file:
            return _within_limit(file.read(MAX_NOTEBOOK_BYTES + 1))
    except Exception as error:  # as above
        raise ValueError(f"could not be unpacked: {visible(error, 200)}") from None


def _within_limit(content: bytes) -> bytes:
    if len(content) > MAX_NOTEBOOK_BYTES:
        raise ValueError(f"is larger than {MAX_NOTEBOOK_BYTES >> 20} MB; is it full of pictures?")
    return content


def _zip_time(entry: zipfile.ZipInfo, packed: datetime) -> datetime:
    """When the file was changed, by the zip's local clock; when it was packed, where the zip does not say."""
    try:
        changed = datetime(*entry.date_time).astimezone(UTC)
    except (ValueError, OverflowError):
        return packed
    return changed if changed.year > 1980 else packed


# -- whose, and which -------------------------------------------------------------------------------------


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


def _answers(course: Course) -> dict[str, set[str]]:
    """assignment -> the ids of the answers in it."""
    return {
        assignment: {grade_id(c) for c in notebook["cells"] if is_answer(c)}
        for assignment, notebook in course.released.items()
    }


def _identified(
    files: Iterator[Found], assignments: dict[str, set[str]], student: str, report: CollectReport
) -> Iterator[tuple[Found, str, str]]:
    candidates, others = [], defaultdict(list)
    for found in files:
        if any(map(_ignored, found.parts)):
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
                f"{_shown(c.found.path)}: is {c.assignment}, but {c.unclear}; expected {LAYOUTS}; "
                "or say it with --student"
            )


def _say_what_is_no_notebook(others: dict[str, list[str]], report: CollectReport) -> None:
    """A line for each archive, and one for all else in a folder: it may be a copy of a whole repository."""
    for folder, paths in others.items():
        rest = []
        for path in paths:
            if path.lower().endswith((".zip", ".7z", ".gz", ".rar")):
                report.not_understood.append(f"{_shown(path)}: is an archive inside; unpack it first")
            else:
                rest.append(path)
        if len(rest) == 1:
            report.not_understood.append(f"{_shown(rest[0])}: is not a notebook (.ipynb)")
        elif rest:
            where = f" in {_shown(folder)}/" if folder else ""
            report.not_understood.append(
                f"{_shown(rest[0])} and {len(rest) - 1} more{where}: are not notebooks (.ipynb)"
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
            report.notes.append(f"{_shown(found.path)}: is {assignment} by its answers, not by its name")
    if not assignment:
        expected = ", ".join(assignments)
        report.not_understood.append(
            f"{_shown(found.path)}: neither name nor answers say which of {expected}"
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
                c.unclear = f"its name says {_shown(c.student)}, and its folder {_shown(mine[beside])}"
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


# -- where it goes ----------------------------------------------------------------------------------------


def _store(
    course: Course, student: str, assignment: str, found: Found, content: bytes, report: CollectReport
) -> bool:
    target = course.notebook("submitted", student, assignment)
    if target.parent.resolve() != target.parent:
        report.not_understood.append(f"{_shown(found.path)}: {target.parent} leads elsewhere; not written")
        return False
    stamp = target.with_name("timestamp.txt")
    kept = read_timestamp(stamp)
    if target.is_file() and kept and kept > found.modified:
        report.notes.append(
            f"{student} has a later {assignment}, of {kept:{_MINUTES}}; kept it, not {_shown(found.path)}"
        )
        return False
    try:
        write_atomically(target, content)
        write_atomically(stamp, f"{found.modified:%Y-%m-%d %H:%M:%S.%f} UTC\n".encode())
    except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
        report.not_understood.append(f"{_shown(found.path)}: {target} cannot be written: {error.strerror}")
        return False
    return True


def read_timestamp(path: Path) -> datetime | None:
    """The time in a timestamp.txt, None where there is none."""
    try:
        return datetime.strptime(path.read_text().strip(), "%Y-%m-%d %H:%M:%S.%f UTC").replace(tzinfo=UTC)
    except (ValueError, OSError):
        return None


def _shown(path: object) -> str:
    return visible(str(path), 160).replace("\n", "⟨U+000A⟩")
