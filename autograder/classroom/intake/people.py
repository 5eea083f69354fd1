"""Who is who in a course without a roster, and what a course remembers about what it collected."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from ..course import Course, read_json, write_atomically
from .roster import Roster, Unclear, read_roster
from .student_id import short_hash, student_id
from .systems import PARTICIPANT, Named

Claim = tuple[Named, str]  # what a name says, and the assignment that was found there


class ClassList:
    """The people of one course. It keeps class.json in the course directory, beside roster.csv.

    `people` id -> the name and the systems' numbers it was collected under; `late` and `trouble` are what
    collecting learned: submissions marked late, and lines about files of a student that were not understood.
    """

    def __init__(self, course: Course) -> None:
        self._path = course.root / "class.json"
        self.roster = read_roster(roster_of(course)) if roster_of(course).exists() else None
        kept = read_json(self._path)
        self.people: dict[str, dict] = kept.get("people", {})
        self.late: dict[str, bool] = kept.get("late", {})
        self.trouble: dict[str, list[str]] = kept.get("trouble", {})

    def save(self) -> None:
        state = {"people": self.people, "late": self.late, "trouble": self.trouble}
        write_atomically(self._path, json.dumps(state, indent=1, sort_keys=True).encode())

    def is_late(self, student: str, assignment: str) -> bool:
        """Did the learning-management system mark this submission as late?"""
        return self.late.get(f"{student}/{assignment}", False)

    def set_late(self, student: str, assignment: str, late: bool) -> None:
        self.late.pop(f"{student}/{assignment}", None)
        if late:
            self.late[f"{student}/{assignment}"] = True

    def knows(self, name: str) -> bool:
        """Whether a name is somebody's: on the roster, or without one, somebody's who handed in before."""
        if self.roster:
            return not isinstance(_on(self.roster, Named(student=name)), Unclear)
        return student_id(name) in self.people

    def ids(self, claims: Iterable[Claim]) -> tuple[dict[Claim, str | Unclear], list[str]]:
        """An id for each claim, or why there is none; and notes. The same claim gets the same id next time."""
        claims = list(dict.fromkeys(claims))
        known = self._known(claims)
        if self.roster:
            here = {person.id for person in self.roster.people}
            said = {claim: student for claim, student in known.items() if student in here}
            return {claim: said.get(claim) or _on(self.roster, claim[0]) for claim in claims}, []
        return self._own_ids(claims, known)

    def said(self, claims: Iterable[Claim], student: str) -> None:
        """Somebody says whose these are. Where a system gave a number, it tells the next time, too."""
        for claim in claims:
            if claim[0].number:
                self._remember(claim, student)

    def _known(self, claims: list[Claim]) -> dict[Claim, str]:
        """Whose each claim is by its number, as far as it was there before."""
        known = {}
        for student, about in self.people.items():
            for slot, numbers in about["numbers"].items():
                name = about["name"] if " " in slot else ""  # a stable number tells without the name
                known.update({(slot, name, number): student for number in numbers})
        keys = {claim: (_slot(claim), "" if claim[0].stable else claim[0].student, claim[0].number) for claim in claims}
        return {claim: known[key] for claim, key in keys.items() if claim[0].number and key in known}

    def _own_ids(self, claims: list[Claim], found: dict) -> tuple[dict[Claim, str | Unclear], list[str]]:
        people = defaultdict(set)
        for claim in claims:
            named = claim[0]
            if claim not in found:
                people[student_id(named.student), _slot(claim)].add((named.student, named.number))
        shared = {student for (student, _), names in people.items() if len(names) > 1}
        notes = [f"{s}: several people have this name; their ids end in a number or a mark" for s in sorted(shared)]
        for claim in claims:
            if claim not in found:
                found[claim] = self._new_id(claim, shared, notes)
        for claim, student in found.items():
            self._remember(claim, student)
        return found, list(dict.fromkeys(notes))

    def _new_id(self, claim: Claim, shared: set[str], notes: list[str]) -> str:
        """The id of a person that no number in class.json tells."""
        named, _ = claim
        plain = student_id(named.student)
        numbered = student_id(f"{named.student}_{named.number}")
        other = numbered if named.number else f"{plain}-{short_hash(named.student, 8)}"
        if plain in shared:
            return plain if plain == named.student and not named.number else other
        if named.student == PARTICIPANT and named.number:
            return other
        before = self.people.get(plain)
        if before is None or not named.number:
            # `ann smith` after `ann_smith` is somebody else, as it would be beside it.
            same = before is None or named.student in (before["name"], plain)
            return plain if same else other
        taken = before["numbers"].get(_slot(claim))
        namesakes = [s for s, p in self.people.items() if p["name"] == named.student]
        if taken or len(namesakes) > 1:
            notes.append(
                f"{other}: {named.system} gives {named.student} the number {named.number} here, and another to "
                f"{' and '.join(sorted(namesakes))}; taken for somebody else; a --roster would tell"
            )
            return other
        return plain

    def _remember(self, claim: Claim, student: str) -> None:
        named = claim[0]
        about = self.people.setdefault(student, {"name": named.student, "numbers": {}})
        if named.number:
            numbers = about["numbers"].setdefault(_slot(claim), [])
            if named.number not in numbers:
                numbers.append(named.number)


def _on(roster: Roster, named: Named) -> str | Unclear:
    try:
        return roster.find(named).id
    except Unclear as unclear:
        return unclear


def _slot(claim: Claim) -> str:
    """Where a number means one person: in a system, or in one assignment of it."""
    named, assignment = claim
    return named.system if named.stable else f"{named.system} {assignment or '?'}"


def roster_of(course: Course) -> Path:
    """Where a course keeps the roster that it was given."""
    return course.root / "roster.csv"


def keep_roster(course: Course, path: Path) -> None:
    """Make `path` the roster of the course, once it was read without an error."""
    read_roster(path)
    write_atomically(roster_of(course), path.read_bytes())
