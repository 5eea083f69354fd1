"""Whose notebook is which assignment, from the names of files and folders."""

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ...text import visible
from ..course import Course, CourseError, stamped_time
from ..submission import answers_in, cells_of, grade_id
from .people import ClassList, Unclear
from .sources import NOTHING, STAMP, CollectReport, Found, shown
from .systems import WORDS, Named, gradescope, name_by_system, split_titles, student_id

MAX_NOTEBOOKS = 100_000
LAYOUTS = (
    "one folder per student (ann/01_vector_add.ipynb), the student in the name (ann_01_vector_add.ipynb), "
    "or the download of Moodle, Canvas, Blackboard, Brightspace, Gradescope or GitHub Classroom"
)
NO_NOTEBOOK = "is not a notebook (.ipynb), and nothing else came from this person"

_COPY_MARK = re.compile(r"^(?:copy of\s+)+|(?:\s*\(\d+\)|[-_ ]+copy ?\d*|\s+kopie)$", re.IGNORECASE)
_NUMBER_AFTER_NAME = re.compile(r"^-\d{1,3}$")
_NO_PERSON = re.compile(rf"{'|'.join(WORDS['nobody'])}|v?\d{{1,2}}")


class Lessons:
    """The assignments of a course: found by what a name says, or by the answers in a notebook."""

    def __init__(self, course: Course) -> None:
        self.answers = {assignment: set(answers_in(notebook)) for assignment, notebook in course.released.items()}
        self._patterns = []
        for number in ("", r"^\d+_"):  # what may be left out
            for assignment in sorted(self.answers, key=len, reverse=True):
                words = r"[\s_\-.]*".join(map(re.escape, re.sub(number, "", assignment).split("_")))
                self._patterns.append((assignment, re.compile(rf"(?<![^\W_]){words}(?![^\W_])", re.IGNORECASE)))

    def named(self, stem: str) -> tuple[str, str]:
        """(assignment, what is left of the name): 01_vector_add, also as "01 vector-add" or vector_add."""
        for assignment, pattern in self._patterns:
            if match := pattern.search(stem):
                before, after = stem[: match.start()], stem[match.end() :]
                after = "" if _NUMBER_AFTER_NAME.match(after) else after
                return assignment, " ".join(filter(None, (s.strip(" _-.,") for s in (before, after))))
        return "", ""

    def answered(self, content: bytes) -> str:
        """The assignment whose answers are in a notebook. ValueError if it is none, or of no single assignment."""
        names = {grade_id(cell) for cell in cells_of(content)}
        matching = [a for a, answers in self.answers.items() if answers & names]
        if len(matching) != 1:
            raise ValueError(f"neither name nor answers say which of {', '.join(self.answers)}")
        return matching[0]


@dataclass(kw_only=True)
class Identified(Found):
    """A file, whose it is ("" if nobody knows), and the assignment, or the problem why it is none.

    `named` is what a system's name said, and `outside` the folders around that name; `rest` is what the file's name
    says beside the assignment. `unclear` says why nobody can be said to have handed it in, `perhaps` who may have.
    `other` is a file that is not a notebook.
    """

    assignment: str
    rest: str
    named: Named
    outside: tuple[str, ...]
    unclear: str = "nothing says whose"
    other: bool = False
    student: str = ""
    perhaps: tuple[str, ...] = ()

    @property
    def person(self) -> tuple[str, str, str]:
        return self.named.system, self.named.student, self.named.number

    @property
    def before_dash(self) -> str:
        """The person in "Ann Lee - 01_vector_add.ipynb", as Google Classroom names a copy."""
        return self.rest if _stem(self.parts[-1]).startswith(f"{self.rest} - ") else ""

    @property
    def number(self) -> str:
        """The folder that Gradescope numbered, of a submission that no metadata name; "" in another download."""
        folders = () if self.named.student else self.folders
        return next((folder for folder in folders if re.fullmatch(r"submission_\d+", folder)), "")

    def came(self, time: datetime | None) -> None:
        """Note when it was handed in, where that is known."""
        if time:
            self.named, self.modified, self.timed = replace(self.named, time=time), time, True


def identified(
    files: Iterator[Found], course: Course, classlist: ClassList, student: str, report: CollectReport
) -> list[Identified]:
    """Whose each notebook is, and which assignment; every file that might be one, and is not, with its problem.

    Of a person of whom no notebook came, there is the first other file. `student`: whose all of it is.
    """
    lessons = Lessons(course)
    there = _all_named(files, lessons, report)
    by_blackboard = [c for c in there if c.named.system == "Blackboard"]
    users = split_titles((c.named.student for c in by_blackboard), lessons.named)
    for c in by_blackboard:
        listed = classlist.roster.user_of(c.named.student) if classlist.roster else None
        c.named = replace(c.named, student=listed or users[c.named.student])
    candidates, others = ([c for c in there if c.other == other] for other in (False, True))
    for c in candidates if classlist.roster else ():
        # Moodle's zip has no times; its grading worksheet, given as the roster, has those of one assignment.
        if c.named.system == "Moodle" and (person := classlist.roster.numbered(c.named)):
            c.came(person.handed_in)
    _name_students(there, lessons, classlist)
    candidates += _instead(candidates, others)
    _resolve(candidates, classlist, student, report)
    with_notebook = {c.student for c in candidates if c.student and not c.other}
    # Two names may be one person's, of whom a notebook came after all.
    candidates = [c for c in candidates if not (c.other and c.student in with_notebook)]
    # What cannot be a notebook is noted by folder: it may be a copy of a whole repository.
    used, left_out = {c.path for c in candidates}, defaultdict(list)
    for c in (c for c in others if not (c.path in used or c.hidden or c.path.endswith(NOTHING))):
        left_out["/".join(c.parts[:-1][:1])].append(shown(c.path))
    for folder, (first, *more) in left_out.items():
        where = f" in {shown(folder)}/" if folder else ""
        what = f" and {len(more)} more{where}: they are not notebooks" if more else ": it is not a notebook"
        report.notes.append(f"left out {first}{what} (.ipynb)")
    return candidates


def _all_named(files: Iterator[Found], lessons: Lessons, report: CollectReport) -> list[Identified]:
    """The files, each with what a system's name or metadata say."""
    there, metadata, notebooks = [], [], 0
    stamps: dict[tuple[str, ...], Found] = {}
    for found in files:
        if found.parts[-1] == STAMP:
            stamps[found.parts[:-1]] = found
        name = found.path.lower()
        if name.endswith(tuple(WORDS["archives"])):
            found = replace(found, problem="is an archive, but no zip; unpack it first")
        if found.parts[-1] == "submission_metadata.yml":
            metadata.append(found)
            continue
        is_script = name.endswith(".py") and bool(lessons.named(_stem(found.parts[-1]))[0])
        other = found.hidden or not (found.problem or is_script or name.endswith((".ipynb", ".ipynb.txt")))
        there.append(_identified_by_name(replace(found, problem=NO_NOTEBOOK) if other else found, lessons, report))
        there[-1].other = other
        if (notebooks := notebooks + (not other)) > MAX_NOTEBOOKS:
            raise CourseError(f"there are more than {MAX_NOTEBOOKS} notebooks; collect in parts")
    candidates = [c for c in there if not c.other]
    for c in candidates:
        # nbgrader keeps <student>/<assignment>/timestamp.txt. Elsewhere a file of this name is the student's own.
        its_layout = not c.named.system and c.parts[1:-1][-1:] == (c.assignment,)
        stamp = stamps.get(c.parts[:-1]) if its_layout and c.timed and not c.in_own_zip else None
        try:
            c.came(stamped_time(stamp.read().decode()) if stamp else None)
        except (ValueError, OSError):
            expected = "expected one such as 2026-10-03 21:59:00 UTC; took the time of the notebook's file"
            report.notes.append(f"{shown(stamp.path)}: says no time; {expected}")
    submitters = _submitters(metadata, candidates, report)
    folders = {"/".join(c.parts[:n]) for c in there for n in range(1, len(c.parts))}
    for folder in (folder for folder, people in submitters.items() if people and folder not in folders):
        nothing = Found(folder, datetime.now(UTC), bytes, NO_NOTEBOOK)
        there.append(replace(_identified_by_name(nothing, lessons, report), other=True))
    copies = []  # one for each submitter that a submission_metadata.yml names
    for c in there:
        people = next(filter(None, (submitters.get("/".join(c.parts[:n])) for n in range(1, len(c.parts) + 1))), [])
        for named in people or [c.named]:
            copies.append(replace(c, named=named, outside=() if people else c.outside))
            copies[-1].came(named.time)
    return copies


def _identified_by_name(found: Found, lessons: Lessons, report: CollectReport) -> Identified:
    *folders, name = found.parts
    at, named = name_by_system(found.trusted)
    assignment, rest = lessons.named(_stem(named.file if named.system and at == len(folders) else name))
    if not assignment:
        assignment = next((a for folder in reversed(folders) if (a := lessons.named(folder)[0])), "")
    about = vars(found) | {"timed": found.timed and named.timed}
    if not assignment and not found.problem:
        try:
            assignment, rest = lessons.answered(found.read()), ""
            report.notes.append(f"{shown(found.path)}: is {assignment} by its answers, not by its name")
        except (ValueError, OSError) as error:
            about["problem"] = str(error)
    about |= {"assignment": assignment, "rest": _person_in(rest), "named": named, "outside": found.folders[:at]}
    one = Identified(**about)
    one.came(named.time)
    return one


def _stem(name: str) -> str:
    """A file's name without its ending and without the marks of a copy."""
    return _COPY_MARK.sub("", re.sub(r"\.(?:ipynb(?:\.txt)?|py)$", "", name, flags=re.IGNORECASE))


def _person_in(rest: str) -> str:
    """What of a name's rest may be a person: "final v2" is none."""
    rest = re.sub(r"\bcopy of\b", " ", rest, flags=re.IGNORECASE)
    words = re.findall(r"[^\W_]+", rest.lower())
    return "" if all(_NO_PERSON.fullmatch(word) for word in words) else " ".join(rest.split()).strip(" _-.,")


def _submitters(metadata: list[Found], candidates: list[Identified], report: CollectReport) -> dict[str, list[Named]]:
    """Folder -> who submitted what is in it. Gradescope's file is above all; another one may be a student's own."""
    submitters = {}
    for found in metadata:
        above = found.parts[:-1]
        if found.in_own_zip or any(c.parts[: len(above)] != above for c in candidates):
            report.notes.append(f"left out {shown(found.path)}: it is not above all that was handed in")
            continue
        try:
            submitters |= {"/".join([*above, name]): people for name, people in gradescope(found.read()).items()}
        except (ValueError, OSError) as error:
            report.problems.append(f"{shown(found.path)}: {visible(error, 200)}")
    return submitters


def _name_students(there: list[Identified], lessons: Lessons, classlist: ClassList) -> None:
    """Fill in the student of those that no system named, from the folders that tell students apart."""
    folders = {id(c): _persons(c.outside, lessons) for c in there}
    plain = [c for c in there if not (c.other or c.named.student or c.problem or c.number)]
    theirs = [folders[id(c)] for c in plain]
    ends = [min(theirs), max(theirs)] if plain else []  # all that os.path.commonprefix looks at
    deepest = max(map(len, theirs), default=0)
    depth = len(os.path.commonprefix(ends))
    split = deepest > depth
    together = defaultdict(set)
    for c in plain:
        together[c.assignment].add(c.rest)
    # One folder cannot be one student's when an assignment is there twice under two people's names.
    flat = not split and any(len(rests - {""}) > 1 for rests in (*together.values(), {c.before_dash for c in plain}))
    for c in there:
        mine = folders[id(c)]
        beside = len(os.path.commonprefix([mine, *ends]))
        if c.named.student:
            # Beside folders that are students, one's files may be named as a system would name another's.
            if len(mine) > beside and deepest > beside:
                c.unclear = f"its name says {shown(c.named.student)}, and its folder {shown(mine[beside])}"
                c.named = replace(c.named, student="")
            continue
        if c.number:
            c.unclear, student = f"no submission_metadata.yml says whose {c.number} is", ""
        elif len(mine) > min(depth, beside):
            student = mine[min(depth, beside)]
        elif mine and not split and not flat and not c.other:
            student = _folder_or_name(c, mine[-1], classlist)
        else:
            student = "" if c.problem else c.rest
        c.named = Named(student=unicodedata.normalize("NFC", student), time=c.named.time)


def _folder_or_name(candidate: Identified, folder: str, classlist: ClassList) -> str:
    """Who it is where all is in one folder: it may be the student's, or that of an assignment. "" where unclear."""
    person = candidate.rest
    if person and classlist.knows(person) != classlist.knows(folder):
        return person if classlist.knows(person) else folder
    if candidate.before_dash:
        candidate.unclear = f"its name says {shown(person)}, and its folder {shown(folder)}"
        return ""
    return folder


def _persons(folders: tuple[str, ...], lessons: Lessons) -> list[str]:
    """The folders that may be named after a person, without what GitHub Classroom writes before the user name."""
    persons = []
    for outer, folder in zip(("", *folders), folders):
        folder = re.sub(r"\.zip$", "", folder, flags=re.IGNORECASE)  # a student's own
        assignment, rest = lessons.named(folder)
        own = "" if assignment or folder.lower() in WORDS["folders"] else folder
        in_name = _person_in(rest) if assignment and "-" in folder else ""  # vector-add-octocat
        persons.append(_github_user(outer, folder) or in_name or own)
    return list(filter(None, persons))


def _github_user(outer: str, folder: str) -> str:
    """The user in <assignment>-submissions/<assignment>-<user>, as `gh classroom clone student-repos` names it."""
    slug = outer.removesuffix("-submissions")
    return folder.removeprefix(f"{slug}-") if slug != outer and folder.startswith(f"{slug}-") else ""


def _instead(candidates: list[Identified], others: list[Identified]) -> list[Identified]:
    """The first other file of each person of whom no notebook came; of Blackboard, not the text about an attempt."""
    first, there = {}, {c.person for c in candidates}
    for c in sorted(others, key=lambda c: c.named.system == "Blackboard" and c.path.lower().endswith(".txt")):
        by_system = c.named.system or any(map(_github_user, c.parts, c.parts[1:]))
        document = c.path.lower().endswith((*WORDS["documents"], NOTHING)) and not c.hidden
        if c.named.student and c.person not in there and (by_system or document):
            first.setdefault(c.person, c)
    return list(first.values())


def _resolve(candidates: list[Identified], classlist: ClassList, student: str, report: CollectReport) -> None:
    usual = {c.named.system: c.assignment for c in candidates if c.assignment}
    names = [  # what tells the person
        replace(c.named, file="", time=None, late=False, assignment=c.assignment or usual.get(c.named.system, ""))
        for c in candidates
    ]
    if student:
        ids = dict.fromkeys(names, student_id(student))
        for named in (one for one in names if one.student and one.number):
            classlist.remember(named, ids[named])
    else:
        ids, notes = classlist.ids(named for named in names if named.student)
        report.notes += notes
    for c, named in zip(candidates, names):
        who = ids.get(named, "")
        if isinstance(who, Unclear):
            c.perhaps, why = who.people, f"{who}; collect it alone and say whose it is with --student"
        else:
            c.student, why = who, f"{c.unclear}; expected {LAYOUTS}; or say it with --student"
        if not c.student and not c.problem:
            c.problem = f"is {c.assignment}, but {why}"
