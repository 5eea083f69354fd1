"""Finds whose notebook is which assignment in a folder or a zip, and copies it to where it is graded.

Nothing is unpacked by the name it came with: every file goes to submitted/<student>/<assignment>/ under names
made here, so a name such as ../../x can only be refused, never followed.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from .course import Course, CourseError, write_atomically
from .sanitise import MAX_NOTEBOOK_BYTES, cells_of, grade_id, is_answer, visible

MAX_FILES = 20_000
MAX_TOTAL_BYTES = 1 << 30
MAX_RATIO = 200  # a notebook compresses about tenfold
LAYOUTS = (
    "one folder per student (ann/01_vector_add.ipynb), the student in the name (ann_01_vector_add.ipynb), "
    "or the zip of Moodle or Canvas"
)

# How learning-management systems name what they pack. `student` is who; `key` tells namesakes apart, and is
# part of the student's id where the system keeps it from one assignment to the next.
_SYSTEMS = (
    ("Moodle", False, r"(?P<student>[^/]+?)_(?P<key>\d+)_assignsubmission_[a-z]+_?(?P<file>.*)"),
    ("Canvas", True, r"(?P<student>[^\W\d_]+)_(?:LATE_)?(?P<key>\d+)_\d+_(?P<file>.+)"),
    ("Blackboard", False, r".*?_(?P<student>[^_]+)_attempt_(?P<key>\d{4}(?:-\d\d){5})_?(?P<file>.*)"),
    ("Brightspace", False, r"(?P<key>\d+)-\d+ ?- ?(?P<student>[^/]+?) ?- ?\w+ \d+, ?\d{4}.*"),
)
_SYSTEMS = tuple((name, stable, re.compile(pattern, re.DOTALL)) for name, stable, pattern in _SYSTEMS)
_IGNORED = {"__MACOSX", "Thumbs.db", "timestamp.txt", "submission_secret.txt"}  # and what begins with a dot
_NO_STUDENT = {"notebooks", "notebook", "submitted", "submissions", "submission", "src", "work"}
_MINUTES = "%Y-%m-%d %H:%M"
_COPY_MARK = re.compile(r"(?:\s*\(\d+\)|[-_ ]+copy ?\d*|\s+kopie)$", re.IGNORECASE)
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
    files = _files(Path(path), report)
    course.create()
    latest: dict[tuple[str, str], tuple[Found, bytes]] = {}
    for found, who, assignment, content in _identified(files, _answers(course), student, report):
        earlier = latest.get((who, assignment))
        if earlier:
            older, newer = sorted([earlier[0], found], key=_recency)
            report.notes.append(
                f"{who} handed in {assignment} twice: took {_shown(newer.path)} of "
                f"{newer.modified:{_MINUTES}}, not {_shown(older.path)} of {older.modified:{_MINUTES}}"
            )
            if newer is not found:
                continue
        latest[who, assignment] = (found, content)
    for (who, assignment), (found, content) in latest.items():
        if _store(course, who, assignment, found, content, report):
            report.collected.append((who, assignment, _shown(found.path)))
    return report


def _recency(found: Found) -> tuple[datetime, int]:
    """Orders the copies of one notebook: by time, then by the number a browser or system appended."""
    number = re.search(r"(?:\((\d+)\)|-(\d+))\.ipynb$", found.path)
    return found.modified, int(number[1] or number[2]) if number else 0


# -- what is there ----------------------------------------------------------------------------------------


def _files(path: Path, report: CollectReport) -> Iterator[Found]:
    if path.is_dir():
        return _files_of_folder(path, report)
    if path.suffix == ".ipynb" and path.is_file():
        return iter([_file(path, path.name)])
    if not path.is_file():
        raise CourseError(f"{path}: there is nothing there; give a folder, a zip or a notebook")
    if not zipfile.is_zipfile(path):
        raise CourseError(f"{path}: is neither a folder, nor a zip, nor an .ipynb file")
    return _files_of_zip(path, report)


def _files_of_folder(root: Path, report: CollectReport) -> Iterator[Found]:
    count = 0
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(s for s in subfolders if not _ignored(s))
        for path in (Path(folder, name) for name in sorted(subfolders + names)):
            name = path.relative_to(root).as_posix()
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                report.not_understood.append(f"{_shown(name)}: is a symbolic link; not followed")
            elif stat.S_ISREG(mode):
                count += 1
                yield _file(path, name)
            if count > MAX_FILES:
                raise CourseError(f"{root}: has more than {MAX_FILES} files; is it the right folder?")


def _ignored(name: str) -> bool:
    return name.startswith(".") or name in _IGNORED


def _file(path: Path, name: str) -> Found:
    def read() -> bytes:
        with path.open("rb") as file:
            return _within_limit(file.read(MAX_NOTEBOOK_BYTES + 1))

    return Found(name, datetime.fromtimestamp(path.lstat().st_mtime, UTC), read)


def _files_of_zip(path: Path, report: CollectReport) -> Iterator[Found]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise CourseError(f"{path}: is a damaged zip: {visible(error, 200)}") from None
    with archive:
        entries = archive.infolist()
        if len(entries) > MAX_FILES:
            raise CourseError(f"{path}: has {len(entries)} files; at most {MAX_FILES} are collected")
        packed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        for entry in (e for e in entries if not e.is_dir()):
            name = entry.filename.replace("\\", "/")
            refusal = _refusal(entry, name)
            if refusal:
                report.not_understood.append(f"{_shown(name)}: {refusal}")
            else:
                yield Found(name, _zip_time(entry, packed), lambda e=entry: _unpacked(archive, e))


def _refusal(entry: zipfile.ZipInfo, name: str) -> str | None:
    parts = PurePosixPath(name).parts
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
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
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
    """A notebook on its way to a student. `rest` is what its name says beside the assignment."""

    found: Found
    content: bytes
    assignment: str
    rest: str
    student: str = ""
    key: str = ""


def _answers(course: Course) -> dict[str, set[str]]:
    """assignment -> the ids of the answers in it."""
    return {
        assignment: {grade_id(c) for c in notebook["cells"] if is_answer(c)}
        for assignment, notebook in course.released.items()
    }


def _identified(
    files: Iterator[Found], assignments: dict[str, set[str]], student: str, report: CollectReport
) -> Iterator[tuple[Found, str, str, bytes]]:
    candidates, total = [], 0
    for found in files:
        candidate = None if any(map(_ignored, found.parts)) else _candidate(found, assignments, report)
        if candidate:
            candidates.append(candidate)
            total += len(candidate.content)
        if total > MAX_TOTAL_BYTES:
            raise CourseError(
                f"there are more than {MAX_TOTAL_BYTES >> 30} GB of notebooks; collect in parts"
            )
    _name_students(candidates, set(assignments))
    ids = _student_ids(candidates, report)
    for c in candidates:
        who = student_id(student) if student else ids.get((c.student, c.key), "")
        if who:
            yield c.found, who, c.assignment, c.content
        else:
            report.not_understood.append(
                f"{_shown(c.found.path)}: is {c.assignment}, but nothing says whose; expected {LAYOUTS}; "
                "or say it with --student"
            )


def _candidate(found: Found, assignments: dict[str, set[str]], report: CollectReport) -> _Candidate | None:
    *folders, name = found.parts
    try:
        if not name.lower().endswith(".ipynb"):
            inside = name.lower().endswith((".zip", ".7z", ".gz", ".rar"))
            raise ValueError(
                "is an archive inside; unpack it first" if inside else "is not a notebook (.ipynb)"
            )
        content = found.read()
    except (ValueError, OSError) as error:
        report.not_understood.append(f"{_shown(found.path)}: {visible(error, 300)}")
        return None
    student, key, stem = _by_system(folders, name)
    stem = _COPY_MARK.sub("", re.sub(r"\.ipynb$", "", stem, flags=re.IGNORECASE))
    assignment, rest = _by_name(stem, assignments)
    if not assignment:
        assignment = next((a for f in reversed(folders) if (a := _by_name(f, assignments)[0])), "")
    if not assignment:
        assignment = _by_answers(content, assignments)
        if assignment:
            rest = ""
            report.notes.append(f"{_shown(found.path)}: is {assignment} by its answers, not by its name")
    if not assignment:
        expected = ", ".join(assignments)
        report.not_understood.append(
            f"{_shown(found.path)}: neither name nor answers say which of {expected}"
        )
        return None
    return _Candidate(found, content, assignment, rest, student, key)


def _by_system(folders: list[str], name: str) -> tuple[str, str, str]:
    """(student, key, file name) where a learning-management system named the file or its folder.

    The outermost name counts: what is inside was named by the student, who may have taken another's name.
    """
    for part in (*folders, name):
        for _, stable, pattern in _SYSTEMS:
            match = pattern.fullmatch(part)
            if match:
                groups = match.groupdict()
                student = f"{groups['student']}_{groups['key']}" if stable else groups["student"]
                return student, groups["key"], groups.get("file") if part == name else name
    return "", "", name


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


def _by_answers(content: bytes, assignments: dict[str, set[str]]) -> str:
    try:
        names = {grade_id(cell) for cell in cells_of(content)}
    except ValueError:
        return ""
    matching = [a for a, answers in assignments.items() if answers & names]
    return matching[0] if len(matching) == 1 else ""


def _name_students(candidates: list[_Candidate], assignments: set[str]) -> None:
    """Fill in the student of those that no learning-management system named."""
    plain = [c for c in candidates if not c.student]
    folders = {
        id(c): [
            f
            for f in c.found.parts[:-1]
            if f.lower() not in _NO_STUDENT and not _by_name(f, dict.fromkeys(assignments, set()))[0]
        ]
        for c in plain
    }
    depth = len(os.path.commonprefix([folders[id(c)] for c in plain])) if plain else 0
    split = any(len(folders[id(c)]) > depth for c in plain)
    together = defaultdict(list)
    for c in plain:
        together[c.assignment].append(c.rest)
    # One folder cannot be one student's when an assignment is there twice and every name says more.
    flat = not split and all(rest for rests in together.values() for rest in rests)
    flat = flat and any(len(set(rests)) > 1 for rests in together.values())
    for c in plain:
        mine = folders[id(c)]
        if len(mine) > depth:
            c.student = mine[depth]
        elif mine and not split and not flat:
            c.student = mine[-1]
        else:
            c.student = c.rest


def _student_ids(candidates: list[_Candidate], report: CollectReport) -> dict[tuple[str, str], str]:
    """An id for each (student, key): namesakes, whom a system tells apart by number, get it in theirs."""
    namesakes = defaultdict(set)
    for c in candidates:
        if c.student:
            namesakes[student_id(c.student), c.assignment].add(c.key)
    shared = {student for (student, _), keys in namesakes.items() if len(keys) > 1}
    for student in sorted(shared):
        report.notes.append(f"{_shown(student)}: several people have this name; their ids end in a number")
    return {
        (c.student, c.key): student_id(f"{c.student}_{c.key}" if student_id(c.student) in shared else c.student)
        for c in candidates
        if c.student
    }


def student_id(name: str) -> str:
    """An id that is safe as a folder, in a URL and in a spreadsheet. Different names get different ids."""
    composed = re.sub(r"\s+", "_", unicodedata.normalize("NFC", name).strip())
    cleaned = re.sub(r"[^\w.@-]", "_", unicodedata.normalize("NFKC", composed))
    cleaned = re.sub(r"^[^\w]+|^_+|[.]+$", "", cleaned)[:60]
    if cleaned == composed:
        return cleaned
    mark = hashlib.sha256(composed.encode("utf-8", "replace")).hexdigest()[:4]
    return f"{cleaned or 'student'}-{mark}"


# -- where it goes ----------------------------------------------------------------------------------------


def _store(
    course: Course, student: str, assignment: str, found: Found, content: bytes, report: CollectReport
) -> bool:
    target = course.notebook("submitted", student, assignment)
    target.parent.mkdir(parents=True, exist_ok=True)
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
    write_atomically(target, content)
    write_atomically(stamp, f"{found.modified:%Y-%m-%d %H:%M:%S.%f} UTC\n".encode())
    return True


def read_timestamp(path: Path) -> datetime | None:
    """The time in a timestamp.txt, None where there is none."""
    try:
        return datetime.strptime(path.read_text().strip(), "%Y-%m-%d %H:%M:%S.%f UTC").replace(tzinfo=UTC)
    except (ValueError, OSError):
        return None


def _shown(path: object) -> str:
    return visible(str(path), 160).replace("\n", "⟨U+000A⟩")
