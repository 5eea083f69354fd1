"""The class list: who is in the course, from the CSV that a learning-management system exports."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ...text import visible
from ..course import CourseError, word
from .student_id import in_a_word, student_id
from .systems import Named, attempt_time
from .tables import read_table

_NAMES = ("name", "fullname", "student", "displayname", "studentname")
_FIRST, _LAST = ("firstname", "givenname"), ("lastname", "surname", "familyname")
_EMAIL, _SECTION, _ROLE = ("email", "emailaddress"), ("section", "sections", "group", "groups"), ("role", "roles")
# The first that a row has becomes the student's id; all of them name the student.
_IDS = (
    *("username", "sisloginid", "loginid", "orgdefinedid", "studentid", "idnumber", "sid", "sisuserid"),
    *("githubusername", "githubid", "integrationid"),
)


class Unclear(LookupError):
    """A name that is nobody's on the roster, or more than one person's: `people`. The message says which."""

    def __init__(self, message: str, people: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.people = tuple(people)


@dataclass(frozen=True)
class Person:
    """One row of the roster. `keys` are the person's identifiers, `numbers` the system's number -> by system.

    `handed_in` is the time in Moodle's grading worksheet, which is about one assignment, as its number is.
    """

    id: str
    name: str = ""
    email: str = ""
    section: str = ""
    keys: frozenset[str] = frozenset()
    numbers: dict[str, str] = field(default_factory=dict, hash=False)
    handed_in: datetime | None = None


class Roster:
    """The people of a course, found by whatever a file's name says about them."""

    def __init__(self, people: list[Person]) -> None:
        self.people = people
        self._by_key: dict[str, list[Person]] = {}
        self._by_name: dict[str, list[Person]] = {}
        for person in people:
            for key in {folded(k) for k in person.keys}:
                self._by_key.setdefault(key, []).append(person)
            for name in _spellings(person.name):
                self._by_name.setdefault(name, []).append(person)

    def find(self, named: Named) -> Person:
        """The person that a name means. Raises Unclear if it is nobody's, or more than one person's."""
        if numbered := self.numbered(named):
            return numbered
        person = self._find_by_name(named)
        number = person.numbers.get(named.system)
        if named.stable and named.number and number:  # two people of one name, one of whom is not listed
            raise Unclear(
                f"{word(named.student)} is not on the roster, where {word(person.id)} has the number {number}"
            )
        return person

    def _find_by_name(self, named: Named) -> Person:
        said = (*named.identifiers, named.student)
        for there in (self._by_key.get(folded(name), []) for name in said):
            if there:
                return self._one(there, named.student)
        name = named.student
        if named.system == "Canvas":
            name = name.removesuffix(f"_{named.number}")
        if there := self._called(name):
            return self._one(there, name)
        if named.system == "Moodle" and (there := self._called(name.partition("-")[2])):
            return self._one(there, name)  # a group's name comes before the student's
        if not named.system:
            return self._one(self._mentioned(name), name)
        raise Unclear(f"{word(named.student)} is not on the roster")

    def numbered(self, named: Named) -> Person | None:
        """The person to whom a system gave the number in a name; None if not exactly one is on the roster."""
        found = [p for p in self.people if named.number and p.numbers.get(named.system) == named.number]
        return found[0] if len(found) == 1 else None

    def user_of(self, name: str) -> str | None:
        """The user name at the end of Blackboard's `title_user`, None if not exactly one is on the roster."""
        pieces = name.split("_")
        found = [user for n in range(1, len(pieces)) if folded(user := "_".join(pieces[n:])) in self._by_key]
        return found[0] if len(found) == 1 else None

    def _called(self, name: str) -> list[Person]:
        there = {p.id: p for s in _spellings(name) for p in self._by_name.get(s, [])}
        return list(there.values())

    def _mentioned(self, text: str) -> list[Person]:
        """Who is named among other words: all words of a name, or an identifier."""
        words = set(_words(text))
        keys = {folded(w) for w in re.split(r"[\s_]+", text)}
        keys |= {folded(text[m.end() :]) for m in re.finditer("-", text)}  # GitHub Classroom: assignment-user
        return [
            p
            for p in self.people
            if keys & {folded(k) for k in p.keys} or (_words(p.name) and words >= set(_words(p.name)))
        ]

    @staticmethod
    def _one(there: list[Person], name: str) -> Person:
        if len({p.id for p in there}) == 1:
            return there[0]
        if not there:
            raise Unclear(f"{word(name)} is not on the roster")
        ids = sorted(p.id for p in there)
        raise Unclear(f"{word(name)} may be {len(there)} people of the roster: {', '.join(ids)}", ids)


def folded(text: str) -> str:
    """Text as it is compared: no case, no accents, no outer blanks."""
    text = unicodedata.normalize("NFKD", text.strip()).casefold()
    return "".join(c for c in text if not unicodedata.combining(c))


def _words(name: str) -> list[str]:
    return "".join(c if in_a_word(c) and c != "_" else " " for c in folded(name)).split()


def _spellings(name: str) -> set[str]:
    """Ways to write a name: its words in any order, and Canvas's `lastfirst` in one word."""
    words = _words(name)
    if not words:
        return set()
    turned = {"".join(words[n:] + words[:n]) for n in range(len(words))}
    return turned | {" ".join(sorted(words))}


def read_roster(path: Path) -> Roster:
    """The people in a CSV that Canvas, Moodle, Blackboard, Brightspace, Gradescope or GitHub Classroom exported.

    A file of one's own needs a column `id` or `name`; `email` and `section` are read, too. Raises CourseError.
    """
    lines = read_table(path, "the roster").lines
    refuse_translated(path, lines)
    people = {}
    for person in filter(None, people_of(lines)):
        if people.setdefault(person.id, person) != person:
            raise CourseError(f"{path}: two rows of the roster are for {word(person.id)}; give each an id")
    if not people:
        columns = ", ".join(visible(cell, 40) for cell in lines[0][:8]) if lines else "nothing"
        raise CourseError(f"{path}: the roster names nobody; found the columns {columns}; expected id, name or email")
    return Roster(list(people.values()))


def refuse_translated(path: Path, lines: list[list[str]]) -> None:
    """CourseError for Moodle's worksheet with titles in another language than English.

    It is known by its first column, one word with a number: "Teilnehmer/in 4711".
    """
    header = [re.sub(r"[^a-z]", "", folded(cell)) for cell in lines[0]] if lines else []
    numbered = [re.fullmatch(r"([^\W\d][^\d,;]{3,})\d+", line[0].strip()) for line in lines[1:] if line]
    same = len({match[1] for match in numbered if match}) == 1 and all(numbered)
    if same and len(header) > 4 and "identifier" not in header and not {*_NAMES, *_EMAIL} & set(header):
        raise CourseError(
            f"{path}: looks like Moodle's worksheet in another language than English; "
            "choose English in Moodle's menu of languages, and download it again"
        )


def people_of(lines: list[list[str]]) -> list[Person | None]:
    """Who is in each line of a CSV below its header; None if a line is no student's."""
    header = [re.sub(r"[^a-z]", "", folded(cell)) for cell in lines[0]] if lines else []
    columns = set(header)
    is_canvas = bool(columns & {"sisloginid", "sisuserid"}) or (
        {"id", "section"} <= columns and ("student" in columns or header[:2] == ["lastname", "firstname"])
    )
    people = []
    for line in lines[1:]:
        row = {}
        for column, cell in zip(header, line):
            row.setdefault(column, cell.strip())
        people.append(_person(row, is_canvas))
    return people


def _person(row: dict[str, str], is_canvas: bool) -> Person | None:
    def first(columns: tuple[str, ...]) -> str:
        return next((row[c] for c in columns if row.get(c)), "")

    name = first(_NAMES)
    if not name or first(_LAST):
        name = " ".join(filter(None, (first(_FIRST), first(_LAST)))) or name
    if name.startswith("Points Possible") or name in ("Student, Test", "Test Student"):  # Canvas's own rows
        return None
    role = first(_ROLE)
    if role and "student" not in role.lower() and "learner" not in role.lower():
        return None
    numbers = {}
    ids = {c: row[c].lstrip("#") for c in _IDS if row.get(c)}  # Brightspace writes #123
    if is_canvas and row.get("id"):
        numbers["Canvas"] = row["id"]
    elif row.get("id"):
        ids = {"id": row["id"], **ids}
    identifier = row.get("identifier", "")
    if participant := re.fullmatch(r"Participant (\d+)", identifier):
        numbers["Moodle"] = participant[1]
    elif identifier:
        ids = {**ids, "identifier": identifier}
    email = first(_EMAIL)
    canvas = f"{''.join(_words(name))}_{numbers['Canvas']}" if numbers.get("Canvas") else ""
    own = next(iter(ids.values()), "") or canvas or email or name
    if "," in name:
        name = " ".join(part.strip() for part in reversed(name.split(",", 1)))
    if not own:
        return None
    local = email.partition("@")[0]
    keys = frozenset(filter(None, (own, student_id(own), *ids.values(), email, local)))
    # mod/assign/gradingtable.php, col_timesubmitted: PHP's userdate, or "-".
    handed_in = attempt_time(row.get("lastmodifiedsubmission", "")) if "Moodle" in numbers else None
    return Person(student_id(own), name, email, first(_SECTION), keys, numbers, handed_in)
