"""Who is in a course: by the roster that a learning-management system exports, or by what was handed in.

A course keeps the roster as roster.csv, and what it learned of people in class.json.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ...text import visible
from ..course import Course, CourseError, read_json, word, write_atomically
from .systems import COLUMNS, PARTICIPANT, Named, attempt_time, in_a_word, short_hash, student_id

MAX_TABLE_BYTES = 16 << 20
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}


@dataclass
class Table:
    """The lines of a CSV, the header first, and how it was written."""

    path: Path
    lines: list[list[str]]
    delimiter: str = ","
    encoding: str = "utf-8"
    newline: str = "\r\n"
    quoted: bool = False

    def people(self) -> list[Person | None]:
        """Who is in each line below the header; None if a line is no student's. Raises CourseError."""
        header = [re.sub(r"[^a-z]", "", folded(cell)) for cell in self.lines[0]] if self.lines else []
        columns = set(header)
        # Moodle's worksheet is known by its first column, one word with a number: "Teilnehmer/in 4711".
        numbered = [re.fullmatch(r"([^\W\d][^\d,;]{3,})\d+", line[0].strip()) for line in self.lines[1:] if line]
        moodles = all(numbered) and len({match[1] for match in numbered}) == 1 and len(header) > 4
        if moodles and not columns & {"identifier", *COLUMNS["name"], *COLUMNS["email"]}:
            how = "choose English in Moodle's menu of languages, and download it again"
            raise CourseError(f"{self.path}: looks like Moodle's worksheet in another language than English; {how}")
        is_canvas = bool(columns & {"sisloginid", "sisuserid"}) or (
            {"id", "section"} <= columns and ("student" in columns or header[:2] == ["lastname", "firstname"])
        )
        # Of two columns of one title the first one counts.
        rows = (dict(reversed([*zip(header, map(str.strip, line))])) for line in self.lines[1:])
        return [_person(row, is_canvas) for row in rows]

    def content(self) -> bytes:
        """The file. A cell that was not changed is what it was."""
        text = io.StringIO()
        quoting = csv.QUOTE_ALL if self.quoted else csv.QUOTE_MINIMAL
        csv.writer(text, delimiter=self.delimiter, lineterminator=self.newline, quoting=quoting).writerows(self.lines)
        return text.getvalue().encode(self.encoding, "replace")


def read_table(path: Path, what: str) -> Table:
    """The CSV in a file; `what` names it in messages. Raises CourseError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_TABLE_BYTES + 1)
    except OSError as error:
        raise CourseError(f"{path}: {what} cannot be read: {error.strerror}") from None
    if len(content) > MAX_TABLE_BYTES:
        raise CourseError(f"{path}: {what} has more than {MAX_TABLE_BYTES >> 20} MB")
    # Blackboard writes UTF-16, Excel the code page of its country.
    encoding = next((known for mark, known in _MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding, "strict" if encoding == "utf-8" else "replace")
    except UnicodeDecodeError:
        encoding, text = "cp1252", content.decode("cp1252", "replace")
    first = text.lstrip().partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        lines = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error as error:
        raise CourseError(f"{path}: {what} is not CSV: {visible(error, 100)}") from None
    quoted = bool(lines) and first.startswith('"') and first.count('"') >= 2 * len(lines[0])
    return Table(path, lines, delimiter, encoding, "\r\n" if "\r\n" in text else "\n", quoted)


class Unclear(LookupError):
    """A name that is nobody's on the roster, or more than one person's: `people`. The message says which."""

    def __init__(self, message: str, people: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.people = tuple(people)


@dataclass(frozen=True)
class Person:
    """A row of the roster: identifiers (`keys`), a number by system, and when Moodle's one assignment was handed in."""

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
        self._by_key, self._by_name = defaultdict(list), defaultdict(list)
        for person in people:
            for key in {folded(k) for k in person.keys}:
                self._by_key[key].append(person)
            for name in _spellings(person.name):
                self._by_name[name].append(person)

    def find(self, named: Named) -> Person:
        """The person that a name means. Raises Unclear if it is nobody's, or more than one person's."""
        if numbered := self.numbered(named):
            return numbered
        there = next(filter(None, self._called(named)), [])
        ids = sorted(person.id for person in there)
        if len(set(ids)) > 1:
            who = named.student.removesuffix(f"_{named.number}") if named.number else named.student
            raise Unclear(f"{word(who)} may be {len(there)} people of the roster: {', '.join(ids)}", ids)
        number = there[0].numbers.get(named.system) if there and named.stable and named.number else ""
        if number or not there:  # or two people of one name, one of whom is not listed
            where = f", where {word(ids[0])} has the number {number}" if number else ""
            raise Unclear(f"{word(named.student)} is not on the roster{where}")
        return there[0]

    def _called(self, named: Named) -> Iterator[list[Person]]:
        """Who may be meant, by each way to say it: an identifier, a name, one behind a group's, words among others."""
        yield from (self._by_key.get(folded(said), []) for said in (*named.identifiers, named.student))
        name = named.student.removesuffix(f"_{named.number}") if named.system == "Canvas" else named.student
        for spelt in (name, name.partition("-")[2] if named.system == "Moodle" else ""):
            yield list({p.id: p for s in _spellings(spelt) for p in self._by_name.get(s, [])}.values())
        if not named.system:  # all words of a name, or an identifier
            words, keys = set(_words(name)), {folded(w) for w in re.split(r"[\s_]+", name)}
            keys |= {folded(name[m.end() :]) for m in re.finditer("-", name)}  # GitHub Classroom: assignment-user
            yield [p for p in self.people if keys & {folded(k) for k in p.keys} or words >= set(_words(p.name)) > set()]

    def numbered(self, named: Named) -> Person | None:
        """The person to whom a system gave the number in a name; None if not exactly one is on the roster."""
        found = [p for p in self.people if named.number and p.numbers.get(named.system) == named.number]
        return found[0] if len(found) == 1 else None

    def user_of(self, name: str) -> str | None:
        """The user name at the end of Blackboard's `title_user`, None if not exactly one is on the roster."""
        pieces = name.split("_")
        found = [user for n in range(1, len(pieces)) if folded(user := "_".join(pieces[n:])) in self._by_key]
        return found[0] if len(found) == 1 else None


def folded(text: str) -> str:
    """Text as it is compared: no case, no accents, no outer blanks."""
    text = unicodedata.normalize("NFKD", text.strip()).casefold()
    return "".join(c for c in text if not unicodedata.combining(c))


def _words(name: str) -> list[str]:
    return "".join(c if in_a_word(c) and c != "_" else " " for c in folded(name)).split()


def _spellings(name: str) -> set[str]:
    """Ways to write a name: its words in any order, and Canvas's `lastfirst` in one word."""
    words = _words(name)
    turned = {"".join(words[n:] + words[:n]) for n in range(len(words))}
    return turned | {" ".join(sorted(words))} if words else set()


def read_roster(path: Path) -> Roster:
    """The people in a CSV that Canvas, Moodle, Blackboard, Brightspace, Gradescope or GitHub Classroom exported.

    A file of one's own needs a column `id` or `name`; `email` and `section` are read, too. Raises CourseError.
    """
    table, people = read_table(path, "the roster"), {}
    for person in filter(None, table.people()):
        if people.setdefault(person.id, person) != person:
            raise CourseError(f"{path}: two rows of the roster are for {word(person.id)}; give each an id")
    if not people:
        columns = ", ".join(visible(cell, 40) for cell in table.lines[0][:8]) if table.lines else "nothing"
        raise CourseError(f"{path}: the roster names nobody; found the columns {columns}; expected id, name or email")
    return Roster(list(people.values()))


def _person(row: dict[str, str], is_canvas: bool) -> Person | None:
    def first(what: str) -> str:
        return next((row[c] for c in COLUMNS[what] if row.get(c)), "")

    name, role = first("name"), first("role").lower()
    if not name or first("last"):
        name = " ".join(filter(None, (first("first"), first("last")))) or name
    if name.startswith("Points Possible") or name in ("Student, Test", "Test Student"):  # Canvas's own rows
        return None
    if role and "student" not in role and "learner" not in role:
        return None
    numbers = {"Canvas": row["id"]} if is_canvas and row.get("id") else {}
    ids = [row.get("id", "")] * (not is_canvas)
    ids += [row[c].lstrip("#") for c in COLUMNS["id"] if row.get(c)]  # Brightspace writes #123
    if participant := re.fullmatch(r"Participant (\d+)", row.get("identifier", "")):
        numbers["Moodle"] = participant[1]
    else:
        ids.append(row.get("identifier", ""))
    email = first("email")
    canvas = f"{''.join(_words(name))}_{numbers['Canvas']}" if "Canvas" in numbers else ""
    own = next(filter(None, (*ids, canvas, email, name)), "")
    if "," in name:
        name = " ".join(part.strip() for part in reversed(name.split(",", 1)))
    if not own:
        return None
    keys = frozenset(filter(None, (own, student_id(own), *ids, email, email.partition("@")[0])))
    # mod/assign/gradingtable.php, col_timesubmitted: PHP's userdate, or "-".
    handed_in = attempt_time(row.get("lastmodifiedsubmission", "")) if "Moodle" in numbers else None
    return Person(student_id(own), name, email, first("section"), keys, numbers, handed_in)


class ClassList:
    """The people of one course. It keeps class.json in the course directory, beside roster.csv.

    `people` id -> the name and the systems' numbers it was collected under; `late` and `trouble` are what
    collecting learned: the (student, assignment) that a system marked as late, and lines about files of a student that
    were not understood.
    """

    def __init__(self, course: Course) -> None:
        self._path = course.root / "class.json"
        self.roster = read_roster(roster_of(course)) if roster_of(course).exists() else None
        kept = read_json(self._path)
        self.people: dict[str, dict] = kept.get("people", {})
        self.late = {tuple(key.split("/")) for key in kept.get("late", ())}
        self.trouble: dict[str, list[str]] = kept.get("trouble", {})

    def save(self) -> None:
        late = dict.fromkeys(map("/".join, self.late), True)
        state = {"people": self.people, "late": late, "trouble": self.trouble}
        write_atomically(self._path, json.dumps(state, indent=1, sort_keys=True).encode())

    def knows(self, name: str) -> bool:
        """Whether a name is somebody's: on the roster, or without one, somebody's who handed in before."""
        on_it = self.roster and not isinstance(_on(self.roster, Named(student=name)), Unclear)
        return on_it if self.roster else student_id(name) in self.people

    def ids(self, names: Iterable[Named]) -> tuple[dict[Named, str | Unclear], list[str]]:
        """An id for each name, or why there is none; and notes. The same name gets the same id next time."""
        names = list(dict.fromkeys(names))
        known = {}  # by numbers that were there before
        for student, about in self.people.items():
            for slot, numbers in about["numbers"].items():
                called = about["name"] if " " in slot else ""  # a stable number tells without the name
                known.update({(slot, called, number): student for number in numbers})
        keys = {named: (named.slot, "" if named.stable else named.student, named.number) for named in names}
        found = {named: known[key] for named, key in keys.items() if named.number and key in known}
        if self.roster:
            here = {person.id for person in self.roster.people}
            said = {named: student for named, student in found.items() if student in here}
            return {named: said.get(named) or _on(self.roster, named) for named in names}, []
        people, new = defaultdict(set), [named for named in names if named not in found]
        for named in new:
            people[student_id(named.student), named.slot].add((named.student, named.number))
        shared = {student for (student, _), called in people.items() if len(called) > 1}
        notes = [f"{s}: several people have this name; their ids end in a number or a mark" for s in sorted(shared)]
        found |= {named: self._new_id(named, shared, notes) for named in new}
        for named, student in found.items():
            self.remember(named, student)
        return found, list(dict.fromkeys(notes))

    def _new_id(self, named: Named, shared: set[str], notes: list[str]) -> str:
        """The id of a person that no number in class.json tells."""
        plain, before = student_id(named.student), self.people.get(student_id(named.student))
        if not named.number:
            other = f"{plain}-{short_hash(named.student, 8)}"
            # `ann smith` after `ann_smith` is somebody else, as it would be beside it.
            same = before is None or named.student in (before["name"], plain)
            return plain if (plain == named.student if plain in shared else same) else other
        other = student_id(f"{named.student}_{named.number}")
        if plain in shared or named.student == PARTICIPANT:
            return other
        if before is None:
            return plain
        namesakes = [s for s, p in self.people.items() if p["name"] == named.student]
        if not before["numbers"].get(named.slot) and len(namesakes) <= 1:
            return plain
        what = f"{named.system} gives {named.student} the number {named.number} here, and another to"
        others = " and ".join(sorted(namesakes))
        notes.append(f"{other}: {what} {others}; taken for somebody else; a --roster would tell")
        return other

    def remember(self, named: Named, student: str) -> None:
        """Keep who somebody is. Where a system gave a number, it tells the next time, too."""
        about = self.people.setdefault(student, {"name": named.student, "numbers": {}})
        if named.number and named.number not in (numbers := about["numbers"].setdefault(named.slot, [])):
            numbers.append(named.number)


def _on(roster: Roster, named: Named) -> str | Unclear:
    try:
        return roster.find(named).id
    except Unclear as unclear:
        return unclear


def roster_of(course: Course) -> Path:
    """Where a course keeps the roster that it was given."""
    return course.root / "roster.csv"
