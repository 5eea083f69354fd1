"""The files in what was handed in: a folder, a zip or one notebook.

Nothing is unpacked by the name it came with. A name such as ../../x can only be refused, never followed.
"""

import contextlib
import functools
import io
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from ...text import visible
from ..course import CourseError, Outcome, word
from ..submission import MAX_NOTEBOOK_BYTES, read_bounded, read_from

MAX_NAME = 1000  # characters of a path in a zip
MAX_NESTED = 10_000  # files in a zip that a student handed in
MAX_RATIO = 200  # a notebook compresses about tenfold
STAMP = "timestamp.txt"  # nbgrader's
NOTHING = "(nothing)"  # stands for the content of an empty folder
_IGNORED = re.compile(r"\..*|__MACOSX|Thumbs\.db|timestamp\.txt|collected\.txt|submission_secret\.txt", re.DOTALL)
Opener = Callable[[], AbstractContextManager[zipfile.ZipFile]]


@functools.lru_cache(10_000)
def _parts(path: str) -> tuple[str, ...]:
    return PurePosixPath(path).parts


@dataclass
class Found:
    """A file among what was handed in. `read` gives its bytes, at most MAX_NOTEBOOK_BYTES, or ValueError.

    `problem` says why there is nothing to read. `modified` is when it was handed in, as far as `timed`: else it may
    be the time of the download, or one that the student's own computer wrote.
    """

    path: str
    modified: datetime
    read: Callable[[], bytes] = field(repr=False, compare=False)
    problem: str = ""
    timed: bool = True

    @property
    def parts(self) -> tuple[str, ...]:
        return _parts(self.path)

    @property
    def hidden(self) -> bool:
        return any(map(_IGNORED.fullmatch, self.parts))

    @property
    def trusted(self) -> tuple[str, ...]:
        """The parts of its path that no student has named: those up to a student's own zip."""
        zips = (at for at, part in enumerate(self.parts[:-1], 1) if part.lower().endswith(".zip"))
        return self.parts[: next(zips, len(self.parts))]

    @property
    def in_own_zip(self) -> bool:
        return self.trusted != self.parts

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that it is in, up to a student's own zip, whose name may be the student's."""
        return self.trusted if self.in_own_zip else self.parts[:-1]


@dataclass
class CollectReport(Outcome):
    """What became of every file: `collected` (student, assignment, path), `problems`; `trouble`: these by student."""

    collected: list[tuple[str, str, str]] = field(default_factory=list)
    trouble: dict[str, list[str]] = field(default_factory=dict)
    blame: str = "not understood: "

    @property
    def status(self) -> int:
        """Exit status: 0, or 1 where a file was not understood."""
        return 1 if self.problems or not self.collected else 0

    def refuse(self, path: str, problem: object, *students: str) -> None:
        """Note a file that was not understood, and whose it is, or may be."""
        line = f"{shown(path)}: {visible(problem, 600)}"
        self.problems.append(line)
        for student in students:
            self.trouble.setdefault(student, []).append(line)

    def print(self, out: Callable[[str], None] = print) -> None:
        students = {student for student, _, _ in self.collected}
        out(f"collected {len(self.collected)} notebooks of {len(students)} students")
        for student, assignment, path in sorted(self.collected):
            out(f"  {student:<24} {assignment:<20} from {path}")
        super().print(out)


@contextlib.contextmanager
def files_in(path: Path, course: Path, report: CollectReport) -> Iterator[Iterator[Found]]:
    """What is in a folder or a zip, which stays open as long as something of it may be read."""
    if path.is_dir():
        yield _with_nested(_files_of_folder(path.resolve(), course, report))
    elif path.name.lower().endswith((".ipynb", ".ipynb.txt", ".py")) and path.is_file():
        yield iter([Found(path.name, _changed(path), functools.partial(read_bounded, path))])
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
            files, refused = _files_of_zip(lambda: contextlib.nullcontext(archive), _changed(path))
            for name, reason in refused:
                report.refuse(name, reason)
            yield _with_nested(iter(files))


def _with_nested(files: Iterator[Found]) -> Iterator[Found]:
    """The files, and those in a student's own zip among them; a zip in that is a problem."""
    for found in files:
        if found.problem or not found.path.lower().endswith(".zip") or found.hidden:
            yield found
            continue
        try:
            inside, refused = _files_of_zip(functools.partial(_opened, found), found.modified)
        except (ValueError, OSError) as error:
            yield replace(found, problem=str(error))
            continue
        if refused:
            name, reason = refused[0]
            yield replace(found, problem=f"holds {shown(name)}: {reason}")
        elif all(one.hidden for one in inside):
            yield replace(found, problem="is a zip with nothing in it to grade")
        for one in inside:
            too_deep = "is a zip in a zip in a zip; unpack it first" if one.path.lower().endswith(".zip") else ""
            yield replace(one, path=f"{found.path}/{one.path}", problem=too_deep or one.problem, timed=False)


@contextlib.contextmanager
def _opened(found: Found) -> Iterator[zipfile.ZipFile]:
    """A zip in a zip. It is unpacked for each reading: a class of them would not fit into memory."""
    content = found.read()
    if content.count(b"PK\x01\x02") > MAX_NESTED:
        raise ValueError(f"is a zip of more than {MAX_NESTED} files")
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except Exception as error:  # damaged bytes raise many kinds
        raise ValueError(f"is a zip that could not be unpacked: {visible(error, 200)}") from None
    with archive:
        yield archive


def _files_of_zip(opened: Opener, packed: datetime) -> tuple[list[Found], list[tuple[str, str]]]:
    """The files in a zip, and (name, why) of those that are refused for their names."""
    files, refused = [], []
    with opened() as archive:
        entries = archive.infolist()
    for entry in entries:
        name = entry.filename.replace("\\", "/")
        parts = PurePosixPath(name).parts
        if not parts:
            refused.append((name, "its name is empty; refused"))
        elif len(name) > MAX_NAME:
            refused.append((name, f"its name has {len(name)} characters; refused"))
        elif name.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:", name):
            refused.append((name, "its name points outside the zip; refused"))
        elif not name.endswith("/"):
            problem = _refusal(entry)
            read = bytes if problem else functools.partial(_unpacked, opened, entry)
            files.append(Found(name, _zip_time(entry, packed), read, problem))
    return files, refused


def _files_of_folder(root: Path, course: Path, report: CollectReport) -> Iterator[Found]:
    """The files in a folder, but for a course directory inside: what is in there was collected before."""
    unreadable: list[OSError] = []
    clones: dict[Path, datetime] = {}  # git gives files the times at which it wrote them, one after the other
    for folder, subfolders, names in os.walk(root, onerror=unreadable.append):
        cloned = _changed(Path(folder, ".git")) if ".git" in subfolders else clones.get(Path(folder).parent)
        clones |= {Path(folder): cloned} if cloned else {}
        subfolders[:] = sorted(s for s in subfolders if not _IGNORED.fullmatch(s) and Path(folder, s) != course)
        if not subfolders and not names:
            yield Found(Path(folder, NOTHING).relative_to(root).as_posix(), _changed(Path(folder)), bytes)
        for path in (Path(folder, name) for name in sorted(subfolders + names)):
            name = path.relative_to(root).as_posix()
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                yield Found(name, _changed(path), bytes, "is a symbolic link; not followed")
            elif stat.S_ISREG(mode):
                found = Found(name, _changed(path), functools.partial(read_bounded, path))
                yield replace(found, modified=cloned, timed=False) if cloned else found
            elif not stat.S_ISDIR(mode):
                yield Found(name, _changed(path), bytes, "is neither a file nor a folder; not read")
    report.problems += [f"{shown(error.filename)}: cannot be opened: {error.strerror}" for error in unreadable]


def _changed(path: Path) -> datetime:
    """When the file was changed; now, if it says a year that no calendar has."""
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(path.lstat().st_mtime, UTC)
    return datetime.now(UTC)


def _refusal(entry: zipfile.ZipInfo) -> str:
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "is a symbolic link; not followed"
    if entry.flag_bits & 0x1:
        return "is encrypted; unpack it with its password first"
    if entry.file_size > MAX_NOTEBOOK_BYTES and entry.file_size > MAX_RATIO * max(entry.compress_size, 1):
        return f"would unpack to {entry.file_size >> 20} MB from {entry.compress_size} bytes; refused"
    return ""


def _unpacked(opened: Opener, entry: zipfile.ZipInfo) -> bytes:
    try:
        with opened() as archive, archive.open(entry) as file:
            return read_from(file)
    except Exception as error:  # as above
        raise ValueError(f"could not be unpacked: {visible(error, 200)}") from None


def _zip_time(entry: zipfile.ZipInfo, packed: datetime) -> datetime:
    """When the file was changed, by the zip's local clock; when it was packed, where the zip does not say."""
    with contextlib.suppress(ValueError, OverflowError):
        changed = datetime(*entry.date_time).astimezone(UTC)
        return changed if changed.year > 1980 else packed
    return packed


def shown(path: object) -> str:
    return word(path, 160)
