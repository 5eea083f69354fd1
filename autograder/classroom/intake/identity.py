"""Whose notebook is which assignment, from the names of files and folders."""

from __future__ import annotations

import functools
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ...text import visible
from ..course import Course, CourseError
from ..submission import cells_of, grade_id, is_answer
from .people import ClassList
from .roster import Unclear
from .sources import NOTHING, STAMP, CollectReport, Found, ignored, shown
from .student_id import student_id
from .systems import WITHOUT_TIMES, Named, gradescope, name_by_system, split_titles, stamped_time

MAX_NOTEBOOKS = 100_000
LAYOUTS = (
    "one folder per student (ann/01_vector_add.ipynb), the student in the name (ann_01_vector_add.ipynb), "
    "or the download of Moodle, Canvas, Blackboard, Brightspace, Gradescope or GitHub Classroom"
)

_DOCUMENTS = (".pdf", ".html", ".htm", ".txt", ".md", ".doc", ".docx", ".odt", ".rtf", ".py", ".png", ".jpg", ".heic")
_NO_STUDENT = {"assets", "data", "docs", "figures", "images"}  # folders that are nobody's
_NO_STUDENT |= {"notebooks", "notebook", "submitted", "submissions", "submission", "src", "work", "homework", "archive"}
_COPY_MARK = re.compile(r"^(?:copy of\s+)+|(?:\s*\(\d+\)|[-_ ]+copy ?\d*|\s+kopie)$", re.IGNORECASE)
_NUMBER_AFTER_NAME = re.compile(r"^-\d{1,3}$")
_NO_PERSON = re.compile(r"old|new|final|last|latest|draft|done|fixed|copy|copie|kopie|backup|attempt|version|v?\d{1,2}")


NO_NOTEBOOK = "is not a notebook (.ipynb), and nothing else came from this person"


@dataclass
class Identified:
    """A file, whose it is ("" if nobody knows), and the assignment, or the problem why it is none.

    `named` is what a system's name said, and `outside` the folders around that name; `rest` is what the file's name
    says beside the assignment. `unclear` says why nobody can be said to have handed it in, `perhaps` who may have.
    `other` is a file that is not a notebook.
    """

    found: Found
    assignment: str
    rest: str
    named: Named
    outside: tuple[str, ...]
    problem: str = ""
    unclear: str = "nothing says whose"
    other: bool = False
    student: str = ""
    perhaps: tuple[str, ...] = ()

    @property
    def person(self) -> tuple[str, str, str]:
        return self.named.system, self.named.student, self.named.number


def answers_of(course: Course) -> dict[str, set[str]]:
    """assignment -> the ids of the answers in it."""
    return {
        assignment: {grade_id(c) for c in notebook["cells"] if is_answer(c)}
        for assignment, notebook in course.released.items()
    }


def identified(
    files: Iterator[Found],
    assignments: dict[str, set[str]],
    classlist: ClassList,
    student: str,
    report: CollectReport,
) -> list[Identified]:
    """Whose each notebook is, and which assignment; every file that might be one, and is not, with its problem.

    Of a person of whom no notebook came, there is the first other file.
    """
    candidates, others = _candidates(files, assignments, report)
    _split_blackboard([*candidates, *others], assignments, classlist)
    _take_times_of_worksheet(candidates, classlist)
    _name_students(candidates, others, tuple(assignments), classlist)
    candidates += _instead(candidates, others)
    usual = {c.named.system: c.assignment for c in candidates if c.assignment}
    claims = [
        (replace(c.named, file="", time=None, late=False), c.assignment or usual.get(c.named.system, ""))
        for c in candidates
    ]
    people = [claim for claim in claims if claim[0].student]
    ids = {}
    if student:
        classlist.said(people, student_id(student))
    else:
        ids, notes = classlist.ids(people)
        report.notes += notes
    for c, claim in zip(candidates, claims):
        who = student_id(student) if student else ids.get(claim, "")
        if isinstance(who, Unclear):
            c.perhaps, why = who.people, f"{who}; collect it alone and say whose it is with --student"
        else:
            c.student, why = who, f"{c.unclear}; expected {LAYOUTS}; or say it with --student"
        if not c.student and not c.problem:
            c.problem = f"is {c.assignment}, but {why}"
    with_notebook = {c.student for c in candidates if c.student and not c.other}
    # Two names may be one person's, of whom a notebook came after all.
    candidates = [c for c in candidates if not (c.other and c.student in with_notebook)]
    used = {c.found.path for c in candidates}
    _say_what_is_no_notebook([c.found for c in others if c.found.path not in used], report)
    return candidates


def _candidates(
    files: Iterator[Found], assignments: dict[str, set[str]], report: CollectReport
) -> tuple[list[Identified], list[Identified]]:
    """What may be a notebook, and the other files, each with what a system's name or metadata say."""
    candidates, others, metadata = [], [], []
    stamps: dict[tuple[str, ...], Found] = {}
    for found in files:
        if found.parts[-1] == STAMP:
            stamps[found.parts[:-1]] = found
        if found.path.lower().endswith((".7z", ".rar", ".tar", ".tar.gz", ".tgz")):
            found = replace(found, problem="is an archive, but no zip; unpack it first")
        if found.parts[-1] == "submission_metadata.yml":
            metadata.append(found)
        elif not _hidden(found) and (found.problem or _might_be_notebook(found, assignments)):
            candidates.append(_candidate(found, assignments, report))
        else:
            others.append(_candidate(replace(found, problem=NO_NOTEBOOK), assignments, report))
            others[-1].other = True
        if len(candidates) > MAX_NOTEBOOKS:
            raise CourseError(f"there are more than {MAX_NOTEBOOKS} notebooks; collect in parts")
    for c in candidates:
        _take_time_of_nbgrader(c, stamps.get(c.found.parts[:-1]), report)
    submitters = _submitters(metadata, candidates, report)
    paths = (c.found.parts for c in (*candidates, *others))
    there = {"/".join(parts[:n]) for parts in paths for n in range(1, len(parts))}
    for folder in (folder for folder, people in submitters.items() if people and folder not in there):
        nothing = Found(folder, datetime.now(UTC), bytes, NO_NOTEBOOK)
        others.append(replace(_candidate(nothing, assignments, report), other=True))
    named = ([one for c in some for one in _by_gradescope(c, submitters)] for some in (candidates, others))
    return next(named), next(named)


def _hidden(found: Found) -> bool:
    return any(map(ignored, found.parts))


def _instead(candidates: list[Identified], others: list[Identified]) -> list[Identified]:
    """The first other file of each person of whom no notebook came; of Blackboard, not the text about an attempt."""
    first, there = {}, {c.person for c in candidates}
    for c in sorted(others, key=lambda c: c.named.system == "Blackboard" and c.found.path.lower().endswith(".txt")):
        by_system = c.named.system or any(map(_github_user, c.found.parts, c.found.parts[1:]))
        document = c.found.path.lower().endswith((*_DOCUMENTS, NOTHING)) and not _hidden(c.found)
        if c.named.student and c.person not in there and (by_system or document):
            first.setdefault(c.person, c)
    return list(first.values())


def _might_be_notebook(found: Found, assignments: dict[str, set[str]]) -> bool:
    """A notebook by its ending, or a Python file that is named like an assignment."""
    name = found.path.lower()
    return name.endswith((".ipynb", ".ipynb.txt")) or (
        name.endswith(".py") and bool(_by_name(_stem(found.parts[-1]), tuple(assignments))[0])
    )


def _say_what_is_no_notebook(others: list[Found], report: CollectReport) -> None:
    """A note for the files of each folder that cannot be notebooks: it may be a copy of a whole repository."""
    folders = defaultdict(list)
    for found in others:
        if not _hidden(found) and not found.path.endswith(NOTHING):
            folders["/".join(found.parts[:-1][:1])].append(found.path)
    for folder, paths in folders.items():
        if len(paths) == 1:
            report.notes.append(f"left out {shown(paths[0])}: it is not a notebook (.ipynb)")
        else:
            where = f" in {shown(folder)}/" if folder else ""
            report.notes.append(
                f"left out {shown(paths[0])} and {len(paths) - 1} more{where}: they are not notebooks (.ipynb)"
            )


def _take_time_of_nbgrader(candidate: Identified, stamp: Found | None, report: CollectReport) -> None:
    """nbgrader keeps <student>/<assignment>/timestamp.txt. Elsewhere a file of this name is the student's own."""
    found = candidate.found
    its_layout = found.timed and not candidate.named.system and found.parts[1:-1][-1:] == (candidate.assignment,)
    if not stamp or not its_layout or _own_zip(found.parts):
        return
    try:
        time = stamped_time(stamp.read().decode())
    except (ValueError, OSError):
        expected = "expected one such as 2026-10-03 21:59:00 UTC; took the time of the notebook's file"
        report.notes.append(f"{shown(stamp.path)}: says no time; {expected}")
        return
    candidate.named = replace(candidate.named, time=time)
    candidate.found = replace(found, modified=time)


def _submitters(metadata: list[Found], candidates: list[Identified], report: CollectReport) -> dict[str, list[Named]]:
    """Folder -> who submitted what is in it. Gradescope's file is above all; another one may be a student's own."""
    submitters = {}
    for found in metadata:
        above = found.parts[:-1]
        if _own_zip(found.parts) or any(c.found.parts[: len(above)] != above for c in candidates):
            report.notes.append(f"left out {shown(found.path)}: it is not above all that was handed in")
            continue
        try:
            submitters |= {"/".join([*above, name]): people for name, people in gradescope(found.read()).items()}
        except (ValueError, OSError) as error:
            report.not_understood.append(f"{shown(found.path)}: {visible(error, 200)}")
    return submitters


def _by_gradescope(candidate: Identified, submitters: dict[str, list[Named]]) -> list[Identified]:
    """The candidate, once for each of its submitters if a submission_metadata.yml names them."""
    found = candidate.found
    folders = ("/".join(found.parts[: n + 1]) for n in range(len(found.parts)))
    people = next(filter(None, map(submitters.get, folders)), [])
    times = [replace(found, modified=n.time or found.modified, timed=bool(n.time) or found.timed) for n in people]
    return [replace(candidate, found=f, named=n, outside=()) for f, n in zip(times, people)] or [candidate]


def _split_blackboard(candidates: list[Identified], assignments: dict[str, set[str]], classlist: ClassList) -> None:
    """Find the user in Blackboard's `title_user`, with the names of all files and the roster in view."""
    mine = [c for c in candidates if c.named.system == "Blackboard"]
    users = split_titles((c.named.student for c in mine), lambda title: _is_title(title, assignments))
    for c in mine:
        listed = classlist.roster.user_of(c.named.student) if classlist.roster else None
        c.named = replace(c.named, student=listed or users[c.named.student])


def _take_times_of_worksheet(candidates: list[Identified], classlist: ClassList) -> None:
    """Moodle's zip has no times; its grading worksheet, given as the roster, has those of one assignment."""
    for c in candidates if classlist.roster else ():
        person = classlist.roster.numbered(c.named) if c.named.system == "Moodle" else None
        if person and person.handed_in:
            c.named = replace(c.named, time=person.handed_in)
            c.found = replace(c.found, modified=person.handed_in, timed=True)


def _is_title(title: str, assignments: dict[str, set[str]]) -> bool:
    assignment, rest = _by_name(title, tuple(assignments))
    return bool(assignment) and not rest


def _candidate(found: Found, assignments: dict[str, set[str]], report: CollectReport) -> Identified:
    *folders, name = found.parts
    at, named = name_by_system(_trusted(found.parts))
    if not named.system:
        at = len(found.parts)
    stem = _stem(named.file if named.system and at == len(folders) else name)
    names = tuple(assignments)
    assignment, rest = _by_name(stem, names)
    if not assignment:
        assignment = next((a for f in reversed(folders) if (a := _by_name(f, names)[0])), "")
    problem = found.problem
    if not assignment and not problem:
        assignment, problem = _by_answers(found, assignments)
        if assignment:
            rest = ""
            report.notes.append(f"{shown(found.path)}: is {assignment} by its answers, not by its name")
    timed = bool(named.time) or (found.timed and named.system not in WITHOUT_TIMES)
    found = replace(found, modified=named.time or found.modified, timed=timed)
    return Identified(found, assignment, _person_in(rest), named, tuple(folders[:at]), problem)


def _own_zip(parts: tuple[str, ...]) -> int:
    """How many parts of a path end with a student's own zip: what follows was named by the student. 0 if none."""
    return next((at for at, part in enumerate(parts[:-1], 1) if part.lower().endswith(".zip")), 0)


def _trusted(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The parts of a path that no student has named."""
    return parts[: _own_zip(parts) or len(parts)]


def _stem(name: str) -> str:
    """A file's name without its ending and without the marks of a copy."""
    stem = re.sub(r"\.(?:ipynb(?:\.txt)?|py)$", "", name, flags=re.IGNORECASE)
    return _COPY_MARK.sub("", stem)


def _person_in(rest: str) -> str:
    """What of a name's rest may be a person: "final v2" is none."""
    rest = re.sub(r"\bcopy of\b", " ", rest, flags=re.IGNORECASE)
    words = re.findall(r"[^\W_]+", rest.lower())
    return "" if all(_NO_PERSON.fullmatch(word) for word in words) else " ".join(rest.split()).strip(" _-.,")


@functools.lru_cache(100_000)
def _by_name(stem: str, assignments: tuple[str, ...]) -> tuple[str, str]:
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


def assignment_in(title: str, assignments: Iterable[str]) -> str:
    """The assignment that a title names, "" if it names none."""
    return _by_name(title, tuple(assignments))[0]


def _by_answers(found: Found, assignments: dict[str, set[str]]) -> tuple[str, str]:
    """(assignment, why it is none)."""
    try:
        names = {grade_id(cell) for cell in cells_of(found.read())}
    except (ValueError, OSError) as error:
        return "", str(error)
    matching = [a for a, answers in assignments.items() if answers & names]
    if len(matching) != 1:
        return "", f"neither name nor answers say which of {', '.join(assignments)}"
    return matching[0], ""


def _name_students(
    candidates: list[Identified], others: list[Identified], assignments: tuple[str, ...], classlist: ClassList
) -> None:
    """Fill in the student of those that no system named, from the folders that tell students apart."""
    folders = {
        id(c): _persons(c.outside if c.named.student else c.found.parts[:-1], assignments)
        for c in [*candidates, *others]
    }
    plain = [c for c in candidates if not c.named.student and not c.problem and not _number_of(c)]
    theirs = [folders[id(c)] for c in plain]
    ends = [min(theirs), max(theirs)] if plain else []  # all that os.path.commonprefix looks at
    deepest = max(map(len, theirs), default=0)
    depth = len(os.path.commonprefix(ends))
    split = deepest > depth
    together = defaultdict(set)
    for c in plain:
        together[c.assignment].add(c.rest)
    # One folder cannot be one student's when an assignment is there twice under two people's names.
    flat = not split and any(len(rests - {""}) > 1 for rests in (*together.values(), {_before_dash(c) for c in plain}))
    for c in [*candidates, *others]:
        mine = folders[id(c)]
        if c.named.student:
            # Beside folders that are students, one's files may be named as a system would name another's.
            beside = len(os.path.commonprefix([mine, *ends]))
            if len(mine) > beside and deepest > beside:
                c.unclear = f"its name says {shown(c.named.student)}, and its folder {shown(mine[beside])}"
                c.named = replace(c.named, student="")
            continue
        at = min(depth, len(os.path.commonprefix([mine, *ends])))
        if number := _number_of(c):
            c.unclear, student = f"no submission_metadata.yml says whose {number} is", ""
        elif len(mine) > at:
            student = mine[at]
        elif mine and not split and not flat and not c.other:
            student = _folder_or_name(c, mine[-1], classlist)
        else:
            student = "" if c.problem else c.rest
        c.named = Named(student=unicodedata.normalize("NFC", student), time=c.named.time)


def _github_user(outer: str, folder: str) -> str:
    """The user in <assignment>-submissions/<assignment>-<user>, as `gh classroom clone student-repos` names it."""
    slug = outer.removesuffix("-submissions")
    return folder.removeprefix(f"{slug}-") if slug != outer and folder.startswith(f"{slug}-") else ""


def _number_of(candidate: Identified) -> str:
    """The folder that Gradescope numbered, of a submission that no metadata name; "" in another download."""
    folders = () if candidate.named.student else _trusted(candidate.found.parts)[:-1]
    return next((folder for folder in folders if re.fullmatch(r"submission_\d+", folder)), "")


def _before_dash(candidate: Identified) -> str:
    """The person in "Ann Lee - 01_vector_add.ipynb", as Google Classroom names a copy."""
    return candidate.rest if _stem(candidate.found.parts[-1]).startswith(f"{candidate.rest} - ") else ""


def _folder_or_name(candidate: Identified, folder: str, classlist: ClassList) -> str:
    """Who it is where all is in one folder: it may be the student's, or that of an assignment. "" where unclear."""
    person = candidate.rest
    if person and classlist.knows(person) != classlist.knows(folder):
        return person if classlist.knows(person) else folder
    if _before_dash(candidate):
        candidate.unclear = f"its name says {shown(person)}, and its folder {shown(folder)}"
        return ""
    return folder


def _persons(folders: tuple[str, ...], assignments: tuple[str, ...]) -> list[str]:
    """The folders that may be named after a person, without what GitHub Classroom writes before the user name."""
    persons = []
    zips = [at for at, folder in enumerate(folders) if folder.lower().endswith(".zip")]
    if zips:  # a student's own zip may be named after the student; what is inside was named by the student
        folders = (*folders[: zips[0]], folders[zips[0]][: -len(".zip")])
    for at, folder in enumerate(folders):
        outer = folders[at - 1] if at else ""
        if user := _github_user(outer, folder):
            persons.append(user)
            continue
        assignment, rest = _by_name(folder, assignments)
        if assignment and "-" in folder and _person_in(rest):  # vector-add-octocat
            persons.append(_person_in(rest))
        elif not assignment and folder.lower() not in _NO_STUDENT:
            persons.append(folder)
    return persons
