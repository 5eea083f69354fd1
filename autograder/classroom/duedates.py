"""When an assignment is due, what being late costs, and what counts in the totals: course.toml of a course."""

import math
import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

FILE = "course.toml"
_UNITS = {"min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(min|h|d|w)[a-z]*")
_PENALTY = re.compile(r"(\d+(?:\.\d+)?) ?(%|points?)(?: (?:an?|per) (hour|day|week))?")


@dataclass(frozen=True)
class Penalty:
    """`amount` percent of an assignment's points, or points, once or for each begun `period`."""

    amount: float
    percent: bool
    period: timedelta | None = None


NAMED = {"none": Penalty(0, percent=False), "all": Penalty(100, percent=True)}


class Rules:
    """What course.toml says. Times have a time zone. `assigned` are the assignments that count, or None."""

    def __init__(self, folder: Path, known: Collection[str]) -> None:
        """The rules in a course directory whose assignments are `known`. Raises OSError and ValueError."""
        file = folder / FILE
        said = tomllib.loads(file.read_bytes().decode("utf-8-sig")) if file.is_file() else {}
        _table(said, "the file", {"assigned", "grace", "penalty", "assignments", "extensions", "handed_in"})
        everywhere = {key: said[key] for key in ("grace", "penalty") if key in said}
        _assignment(everywhere, "")
        own = _table(said.get("assignments", {}), "assignments")
        self._assignments = {
            name: _assignment({**everywhere, **_table(own.get(name, {}), name)}, name)
            for name in dict.fromkeys([*known, *own])
        }
        chosen = said.get("assigned")
        if chosen is not None and not (isinstance(chosen, list) and all(isinstance(a, str) for a in chosen)):
            raise ValueError('assigned: expected a list of assignments, such as ["00_setup"]')
        for name in (*self._assignments, *(chosen or ())):
            if name not in known:
                raise ValueError(f"there is no assignment {name!r}; there are: {', '.join(known)}")
        self.assigned = chosen and [name for name in known if name in chosen]
        self._extensions = _by_student(said, "extensions", known)
        self._handed_in = _by_student(said, "handed_in", known)

    @property
    def students(self) -> set[str]:
        """The students that have rules of their own."""
        return {student for student, _ in (*self._extensions, *self._handed_in)}

    def _about(self, assignment: str) -> dict:
        return self._assignments.get(assignment, {})

    def _grace(self, assignment: str) -> timedelta:
        return self._about(assignment).get("grace", timedelta())

    def due(self, assignment: str) -> datetime | None:
        """When it is due for those without an extension; None if nothing says."""
        return self._about(assignment).get("due")

    def extension(self, student: str, assignment: str) -> timedelta | None:
        """How much later it is due for this student; None if it is not."""
        due, more = self.due(assignment), self._extensions.get((student, assignment))
        if due is None or more is None:
            return None
        return more if isinstance(more, timedelta) else more - due

    def handed_in(self, student: str, assignment: str) -> datetime | None:
        """When it was handed in, where course.toml says it."""
        return self._handed_in.get((student, assignment))

    def late_by(self, student: str, assignment: str, handed_in: datetime | None) -> timedelta:
        """How long after its due date something was handed in; 0 in time, in the grace time, and where unknown."""
        handed_in = self.handed_in(student, assignment) or handed_in
        due = self.due(assignment)
        if due is None or handed_in is None:
            return timedelta()
        late = handed_in - due - (self.extension(student, assignment) or timedelta())
        return late if late > self._grace(assignment) else timedelta()

    def penalty(self, assignment: str, points: float, late: timedelta) -> float | None:
        """What is taken off so many points, perhaps more than was earned; None if course.toml has no penalty."""
        if (rule := self._about(assignment).get("penalty")) is None or late <= self._grace(assignment):
            return None if rule is None else 0.0
        times = math.ceil(late / rule.period) if rule.period else 1
        return times * (rule.amount * points / 100 if rule.percent else rule.amount)

    def least_late(self, assignment: str) -> float:
        """Seconds of a lateness that costs what every lateness costs; 0 if it matters how late something is."""
        rule = self._about(assignment).get("penalty")
        return self._grace(assignment).total_seconds() + 1 if rule and not rule.period else 0.0

    def weight(self, assignment: str, points: float) -> float:
        """As how many points an assignment of so many points counts in the total."""
        return self._about(assignment).get("weight", points)


def _assignment(said: dict, name: str) -> dict:
    return {key: _read(key, value, f"{name}.{key}".strip(".")) for key, value in _table(said, name, _READ).items()}


def _by_student(said: dict, title: str, known: Collection[str]) -> dict[tuple[str, str], timedelta | datetime]:
    found = {}
    for student, about in _table(said.get(title, {}), title).items():
        for assignment, value in _table(about, f"{title}.{student}").items():
            if assignment not in known:
                raise ValueError(f"{title}.{student}: there is no assignment {assignment!r}")
            kind = "grace" if title == "extensions" and isinstance(value, str) else "due"
            found[student, assignment] = _read(kind, value, f"{title}.{student}.{assignment}")
    return found


def _read(key: str, value: object, where: str):
    read, expected = _READ[key]
    if (found := read(value)) is None:
        raise ValueError(f"{where}: found {value!r}; expected {expected}")
    return found


def _table(value: object, where: str, known: Collection[str] = ()) -> dict:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: found {value!r}; expected a table, such as [{where}]")
    if known and (others := sorted(value.keys() - set(known))):
        raise ValueError(f"{where}: there is no {others[0]!r}; there are: {', '.join(sorted(known))}")
    return value


def _date(value: object) -> datetime | None:
    """A date is its last second; a time without a zone is by this computer's clock."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time(23, 59, 59))
    return value.astimezone(UTC) if isinstance(value, datetime) else None


def _duration(value: object) -> timedelta | None:
    match = _DURATION.fullmatch(str(value).strip())
    return timedelta(seconds=float(match[1]) * _UNITS[match[2]]) if match else None


def _penalty(value: object) -> Penalty | None:
    match = _PENALTY.fullmatch(str(value).strip())
    if not match:
        return NAMED.get(str(value))
    period = timedelta(seconds=_UNITS[match[3][0]]) if match[3] else None
    return Penalty(float(match[1]), match[2] == "%", period)


_READ = {
    "due": (_date, "a date, such as 2026-10-03T23:59:00"),
    "grace": (_duration, 'a time, such as "15 min", "2 h", "3 d" or "1 w"'),
    "penalty": (_penalty, '"10% a day", "2 points an hour", "20%", "all" or "none"'),
    "weight": (lambda n: n if type(n) in (int, float) and n >= 0 else None, "a number of points, such as 10"),
}


def spoken(late: timedelta) -> str:
    """A time in words, in its two largest units: 1 day 3 hours."""
    minutes = max(math.ceil(late.total_seconds() / 60), 1)
    parts = []
    for unit, size in (("day", 1440), ("hour", 60), ("minute", 1)):
        count, minutes = divmod(minutes, size)
        parts += [f"{count} {unit}{'s' * (count != 1)}"] if count else []
    return " ".join(parts[:2])
