"""How learning-management systems name what they pack: who handed it in, when, and whether late; ids for names."""

import hashlib
import os
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path

import dateutil.parser
import yaml

from ...text import BLANK_LETTERS

MAX_METADATA_BYTES = 16 << 20
PARTICIPANT = "Participant"  # Moodle's name for everybody where marking is anonymous
_UNSEEN = "\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"  # marks that show nothing


def student_id(name: str) -> str:
    """An id that is safe as a folder, in a URL and in a spreadsheet: blanks become "_", further changes a mark."""
    composed = re.sub(r"\s+", "_", unicodedata.normalize("NFC", name).strip())
    safe = re.sub(f"[{BLANK_LETTERS}{_UNSEEN}]", "_", unicodedata.normalize("NFKC", composed))
    safe = "".join(c if in_a_word(c) or c in ".@-" else "_" for c in safe).rstrip(".")
    first = next((at for at, c in enumerate(safe) if c.isalnum()), len(safe))
    cleaned = safe[first : first + 60]
    return cleaned if cleaned == composed else f"{cleaned or 'student'}-{short_hash(composed, 4)}"


def in_a_word(c: str) -> bool:
    """Whether a character belongs to a word, as Ruby sees it. Python's regular expressions leave out Hindi's vowels."""
    return c == "_" or c.isalnum() or unicodedata.category(c)[0] == "M"


def short_hash(name: str, length: int) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:length]


@dataclass(frozen=True)
class Named:
    """What a name that a system gave says. Fields are empty where it says nothing.

    `number` tells namesakes apart. Where `stable`, the system keeps it from one assignment to the next.
    `identifiers` are further names of the same person, such as an e-mail address. `time` is the attempt's.
    Where not `timed`, the system packs files with the time of the download. `assignment` is what was found there.
    """

    system: str = ""
    student: str = ""
    number: str = ""
    stable: bool = False
    identifiers: tuple[str, ...] = ()
    file: str = ""
    time: datetime | None = None
    late: bool = False
    timed: bool = True
    assignment: str = ""

    @property
    def slot(self) -> str:
        """Where its number means one person: in a system, or in one assignment of it."""
        return self.system if self.stable else f"{self.system} {self.assignment or '?'}"


@dataclass(frozen=True)
class System:
    """A learning-management system. systems.toml says what the fields are; they are empty where it says nothing."""

    name: str
    download: re.Pattern
    stable: bool = False
    timed: bool = True
    grades: dict[str, str] = field(default_factory=dict)


_SAID = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
COLUMNS, WORDS = _SAID.pop("columns"), _SAID.pop("words")
_ALL = {
    key: System(**said | {"download": re.compile(said["download"], re.DOTALL | re.VERBOSE)})
    for key, said in _SAID.items()
}
SYSTEMS = {key: system for key, system in _ALL.items() if system.grades}  # those whose CSV can be filled
_DATED = re.compile(r"[^\W\d]{3,}.*\d{4}|\d{4}-\d\d-\d\d")  # 10/3/2024 may be October or March
_CLOCK_AFTER_DATE = re.compile(r"(\d{4}(?:-\d\d-\d\d)?\D+\d{1,2})[ .h]?(\d\d)(?=$| ?[AaPp][Mm])")  # 1005, 10 05, 10.05


def name_by_system(parts: tuple[str, ...]) -> tuple[int, Named]:
    """Which part of a path a system named, and what the name says; (number of parts, nothing) if none did.

    The outermost name counts: what is inside was named by the student, who may have taken another's name.
    """
    for at, part in enumerate(parts):
        part = unicodedata.normalize("NFC", part)
        for system in _ALL.values():
            match = system.download.fullmatch(part)
            said = {group: text or "" for group, text in match.groupdict().items()} if match else {}
            if match and (system.name != "Canvas" or _is_canvas(**said)):
                number, time = said.get("number", ""), attempt_time(said.get("time", ""))
                student = f"{said['student']}_{number}" if system.name == "Canvas" else said["student"]
                about = {"file": said["file"], "time": time, "late": bool(said.get("late")), "timed": system.timed}
                return at, Named(system.name, student, number, system.stable, **about)
    return len(parts), Named()


def _is_canvas(student: str, number: str, attachment: str, **_) -> bool:
    """One with "_" or a digit in front may be a student's own name for a file; it counts where numbers are long."""
    plain = student[0].isalpha() and "_" not in student
    return all(map(in_a_word, student)) and (plain or len(number) > 2 < len(attachment or number))


def split_titles(names: Iterable[str], named: Callable[[str], tuple[str, str]]) -> dict[str, str]:
    """Blackboard's `title_user`, for every name of one download: name -> user.

    A title that is the name of an assignment, and by `named` nothing else, ends there. Else what all names begin with,
    up to a "_", is the title, and of a single name the part before its first "_".
    """
    users, unknown = {}, []
    for name in set(names):
        pieces = name.split("_")
        titles = (named("_".join(pieces[:n])) for n in range(1, len(pieces)))
        known = [n for n, (assignment, rest) in enumerate(titles, 1) if assignment and not rest]
        if known:
            users[name] = "_".join(pieces[known[-1] :])
        else:
            unknown.append(pieces)
    shared = len(os.path.commonprefix(unknown)) if len(unknown) > 1 else 1
    ends = max(1, min([shared, *(len(pieces) - 1 for pieces in unknown)]))  # a user has a piece of the name at least
    return users | {"_".join(pieces): "_".join(pieces[ends:]) for pieces in unknown}


def attempt_time(text: str, zone: tzinfo | None = None) -> datetime | None:
    """The time in a system's name or table, None if none is understood. zone: if it says none; None: this clock's."""
    try:
        if re.fullmatch(r"\d{4}(-\d\d){5}", text):  # Blackboard
            return datetime.strptime(text, "%Y-%m-%d-%H-%M-%S").astimezone(UTC)
        if not _DATED.search(text):
            return None
        text = _CLOCK_AFTER_DATE.sub(r"\1:\2", text)
        return dateutil.parser.parse(text, default=datetime(2000, 1, 1, tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def gradescope(content: bytes) -> dict[str, list[Named]]:
    """submission folder -> its submitters, from a submission_metadata.yml; ValueError if it is none.

    Every value is read as text: a student number keeps its zeros, and nothing is constructed.
    """
    if len(content) > MAX_METADATA_BYTES:
        raise ValueError(f"has more than {MAX_METADATA_BYTES >> 20} MB")
    try:
        folders = yaml.load(content, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"is not YAML: {str(error).partition(chr(10))[0]}") from None
    if not isinstance(folders, dict):
        raise ValueError("names no submissions")
    return {name: list(_submitters(about)) for name, about in folders.items() if isinstance(about, dict)}


def _submitters(about: dict) -> Iterator[Named]:
    people = about.get(":submitters")
    for person in people if isinstance(people, list) else []:
        if isinstance(person, dict):
            name, sid, email = (str(person.get(f":{field}") or "") for field in ("name", "sid", "email"))
            identifiers = tuple(filter(None, (sid, email)))
            if name or identifiers:
                time = attempt_time(str(about.get(":created_at")), UTC)  # 2024-10-03 10:15:00.123456789 Z
                yield Named("Gradescope", name or identifiers[0], sid or email, True, identifiers, time=time)
