"""Run every attack against the full path: collect, grade, gradebook, feedback.

    python tests/run_attacks.py [PATTERN ...] [--where WHERE] [--fuzz COUNT] [--price]

Each attack is a student of one class; two honest students with right answers sit at its ends. Prints a table
(attack, what must happen, what happened) and what was found outside the course. Exit status 1 when an attack
earned or harmed anything. Patterns are parts of file names.

    tests/attacks/<exercise>/NN_slug.py   an answer
    tests/attacks/notebooks/NN_slug.py    attack(notebook, cell) changes a notebook, or returns a file's bytes
    tests/attacks/archives/NN_slug.py     attack(path, notebook) writes a zip

NN is the number in the catalogue of tests/attacks/README.md. @COURSE@, @CANARY@ and @PORT@ in an attack
become the course directory, a folder where anybody may write and nobody should, and a listener's port.
"""

import argparse
import ast
import contextlib
import copy
import ctypes
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import containers
from probes import ROOT

ATTACKS = ROOT / "tests" / "attacks"
ASSIGNMENT = "01_vector_add"
HONEST = ("aa-honest", "zz-honest")
PLACES = ("here", "user", "container", "container-user")
SLOW_SECONDS = 90  # no submission may hold its worker longer


# -- the attacks ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attack:
    """One file. `kind` is an exercise, "notebooks" or "archives"."""

    path: Path

    @property
    def kind(self) -> str:
        return self.path.parent.name

    @property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def must(self) -> str:
        return ast.get_docstring(ast.parse(self.text)).partition("Must: ")[2].rstrip(".").replace("\n", " ")

    def __str__(self) -> str:
        return f"{self.kind}/{self.path.stem}"


def attacks(patterns: list[str] = ()) -> list[Attack]:
    found = [Attack(path) for path in sorted(ATTACKS.glob("*/[0-9]*.py"))]
    return [a for a in found if not patterns or any(p in str(a) for p in patterns)]


# -- what must stay untouched -----------------------------------------------------------------------------


class Listener:
    """TCP and UDP on one loopback port, and a Unix socket; `received` is whatever arrives."""

    def __init__(self, folder: Path):
        self.received: list[bytes] = []
        self.tcp, self.udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
        self.unix = socket.socket(socket.AF_UNIX)
        self.tcp.bind(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.udp.bind(("127.0.0.1", self.port))
        self.unix.bind(str(folder / "socket"))
        os.chmod(folder / "socket", 0o777)
        for stream in (self.tcp, self.unix):
            stream.listen()
            threading.Thread(target=self._accept, args=(stream,), daemon=True).start()
        threading.Thread(target=self._datagrams, daemon=True).start()

    def _accept(self, stream: socket.socket) -> None:
        while True:
            connection, _ = stream.accept()
            self.received.append(b"a connection")
            connection.close()

    def _datagrams(self) -> None:
        while True:
            self.received.append(self.udp.recv(1000))


class Surroundings:
    """Everything outside the course that an attack may aim at, before and after."""

    DROPPED = ("usercustomize.py", "filler")  # what attacks 38 and 46 would leave where they can

    def __init__(self, root: Path):
        self.canaries = root / "canaries"
        self.canaries.mkdir()
        (self.canaries / "victim.txt").write_text("untouched")
        self.listener = Listener(self.canaries)
        for path in (self.canaries, self.canaries / "victim.txt"):
            path.chmod(0o777)
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: what a dead box leaves becomes ours
        self.before = self._files()

    def _files(self) -> set[str]:
        places = [
            "/tmp",
            "/dev/shm",
            "/var/tmp",
            os.path.expanduser("~"),
            os.getcwd(),
            *filter(None, sys.path),
        ]
        dropped = {os.path.join(p, name) for p in places for name in self.DROPPED}
        kept = {str(p) + p.read_text() for p in self.canaries.rglob("*") if p.is_file()}
        return {path for path in dropped if os.path.exists(path)} | kept

    def harm(self) -> list[str]:
        """What is wrong now, in words."""
        time.sleep(3)  # attack 44's process would act two seconds later
        found = [f"changed outside: {path}" for path in sorted(self._files() ^ self.before)]
        found += [f"arrived at the listener: {message[:40]!r}" for message in self.listener.received]
        return found + [f"left a process: {command}" for command in _children()]


def _children() -> list[str]:
    """The command lines of processes that are left, ended as soon as they are noted."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return []
    commands = []
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
            if "multiprocessing.resource_tracker" not in command:  # Python's own, which ends with this process
                commands.append(command[:80])
                os.kill(int(pid), signal.SIGKILL)
    return commands


# -- the class --------------------------------------------------------------------------------------------


@dataclass
class Class:
    """A course directory and a folder of hand-ins: the honest students and one student per attack."""

    root: Path
    around: Surroundings
    archives: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        from autograder.classroom.course import Course
        from autograder.lessons import answers

        Course.open(self.root / "course").create()
        self.course = Course.open(self.root / "course")
        self.handed_in = self.root / "handed-in"
        script = ROOT / "solutions" / f"{ASSIGNMENT}.py"
        self.notebook_of = {
            cell["metadata"]["nbgrader"]["grade_id"]: assignment
            for assignment, notebook in self.course.released.items()
            for cell in notebook["cells"]
            if "nbgrader" in cell["metadata"]
        }
        self.student_of: dict[Attack, str] = {}
        right = copy.deepcopy(self.course.released[ASSIGNMENT])
        for name, source in answers(script).items():
            _cell(right, name)["source"] = source
        for student in HONEST:
            self._write(student, ASSIGNMENT, right)

    def _write(self, student: str, assignment: str, content: dict | bytes) -> None:
        path = self.handed_in / student / f"{assignment}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())

    def add(self, attack: Attack) -> bool:
        """Hand an attack in; False where its exercise is not released yet."""
        self.student_of[attack] = f"mallory-{len(self.student_of):03}"
        text = attack.text
        places = {
            "COURSE": self.course.root,
            "CANARY": self.around.canaries,
            "PORT": self.around.listener.port,
        }
        for name, value in places.items():
            text = text.replace(f"@{name}@", str(value))
        if attack.kind == "archives":
            self.archives.append(self.root / f"{self.student_of[attack]}.zip")
            released = json.dumps(self.course.released[ASSIGNMENT])
            _function(attack, text)(self.archives[-1], released)
            return True
        if attack.kind == "notebooks":
            notebook = copy.deepcopy(self.course.released[ASSIGNMENT])
            changed = _function(attack, text)(notebook, lambda name, nb=notebook: _cell(nb, name))
            self._write(self.student_of[attack], ASSIGNMENT, notebook if changed is None else changed)
            return True
        if attack.kind not in self.notebook_of:
            return False
        notebook = copy.deepcopy(self.course.released[self.notebook_of[attack.kind]])
        for cell in notebook["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("solution"):
                cell["source"] = ""
        _cell(notebook, attack.kind)["source"] = text
        self._write(self.student_of[attack], self.notebook_of[attack.kind], notebook)
        return True

    def open_doors(self) -> None:
        """Make the course writable for everybody, so that only the confinement protects it."""
        for path in (self.course.root, *self.course.root.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o777 if path.is_dir() else 0o666)


def _cell(notebook: dict, name: str) -> dict:
    return next(c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name)


def _function(attack: Attack, text: str):
    spec = importlib.util.spec_from_loader(attack.path.stem, loader=None)
    module = importlib.util.module_from_spec(spec)
    exec(compile(text, str(attack.path), "exec"), module.__dict__)
    return module.attack


# -- what came of it --------------------------------------------------------------------------------------


def scores(course) -> dict[str, float]:
    """student -> points in the database, over all assignments."""
    from nbgrader.api import Gradebook

    with Gradebook(course.db_url, "triton-workshop") as gradebook:
        return {student.id: student.score for student in gradebook.students}


class Live(HTMLParser):
    """Collects what a browser would run or fetch from elsewhere."""

    ACTIVE = frozenset({"script", "iframe", "object", "embed", "form", "base", "link"})
    HARMLESS_META = frozenset({"charset", "name", "Content-Security-Policy"})
    FETCHES = re.compile(r"\s*(javascript|data|https?):", re.IGNORECASE)

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        said = {word for attribute in attrs for word in attribute}
        if tag in self.ACTIVE or (tag == "meta" and not said & self.HARMLESS_META):
            self.found.append(f"<{tag}>")
        for name, value in attrs:
            fetches = name in {"src", "href", "action", "srcset"} and self.FETCHES.match(value or "")
            if name.startswith("on") or fetches:
                self.found.append(f"{tag} {name}={value}"[:60])

    handle_startendtag = handle_starttag


def _live_parts(text: str) -> list[str]:
    parser = Live()
    parser.feed(text)
    return parser.found


def shown(course) -> Iterator[str]:
    """What is live or invisible in the pages and notebooks that people will look at."""
    for page in course.root.glob("feedback/**/*.html"):
        yield from (f"{page.parent.name}: {part}" for part in _live_parts(page.read_text()))
        yield from (f"{page.parent.name}: {c!r}" for c in set(page.read_text()) if _invisible(c))
    for path in course.root.glob("autograded/*/*/*.ipynb"):
        released = {c["id"]: "".join(c["source"]) for c in course.released[path.stem]["cells"]}
        for cell in json.loads(path.read_text())["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown" and source not in released.values():
                yield f"{path.parts[-3]}: a text cell that was not released"
            for output in cell.get("outputs", []):
                data = output.get("data", {})
                foreign = set(data) - {"text/html", "text/plain"}
                yield from (f"{path.parts[-3]}: output of type {kind}" for kind in foreign)
                yield from (f"{path.parts[-3]}: {p}" for p in _live_parts("".join(data.get("text/html", ""))))


def _invisible(character: str) -> bool:
    return character not in "\n\t" and unicodedata.category(character) in {"Cc", "Cf", "Cs"}


@dataclass
class Line:
    attack: str
    must: str
    happened: str
    ok: bool


def run(patterns: list[str], workers: int = 2) -> tuple[list[Line], list[str]]:
    """The table and the list of harm; both are empty of trouble when everything held."""
    from autograder.classroom.grading.grade import grade
    from autograder.classroom.intake.collect import collect
    from autograder.classroom.reports.feedback import feedback
    from autograder.classroom.standing import export

    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        around = Surroundings(root)
        group = Class(root, around)
        chosen = attacks(patterns)
        waiting = [a for a in chosen if not group.add(a)]
        group.open_doors()
        said: list[str] = []
        notes = {}
        for path in (group.handed_in, *group.archives):
            report = collect(path, group.course)
            report.print(said.append)
            for refused in report.problems:
                notes[refused.partition("/")[0]] = refused.partition(": ")[2]
            notes[path.stem] = (
                f"{len(report.problems)} files refused, {len(report.collected)} collected"
            )
        graded = grade(group.course, workers=workers, progress=said.append)
        graded.print(said.append)
        feedback(group.course).print(said.append)
        export(group.course)
        earned = scores(group.course)
        rows = {row.student: row for row in graded.rows}
        table = [_line(a, group, rows, earned, notes) for a in chosen if a not in waiting]
        harm = [
            f"{student} has {earned.get(student)} points, not 11"
            for student in HONEST
            if earned.get(student) != 11
        ]
        harm += [f"{student} has {n} points" for student, n in earned.items() if n and student not in HONEST]
        harm += [f"printed to the terminal: {c!r}" for line in said for c in line if _invisible(c)]
        harm += sorted(set(shown(group.course)))[:20] + around.harm()
        harm += [f"not tried, its exercise is not released: {a}" for a in waiting]
        return table, harm


def _line(attack: Attack, group: Class, rows: dict, earned: dict, notes: dict) -> Line:
    student = group.student_of[attack]
    if attack.kind == "archives":
        return Line(str(attack), attack.must, notes[student], True)
    row = rows.get(student)
    if row is None:
        return Line(str(attack), attack.must, notes.get(student, "was lost"), student in notes)
    points = max(row.score, earned.get(student, 0.0))
    happened = f"{points:g} points, {_reason(row, attack)}, {row.seconds:.1f} s"
    return Line(str(attack), attack.must, happened, points == 0 and row.seconds < SLOW_SECONDS)


def _reason(row, attack: Attack) -> str:
    name = "vector_add" if attack.kind == "notebooks" else attack.kind
    for cell in (row.notebook or {}).get("cells", ()):
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == f"check-{name}":
            return str(cell["metadata"].get("verdict", {}).get("diagnosis"))
    return "; ".join(row.notes)[:60] or "no verdict"


# -- where ------------------------------------------------------------------------------------------------


def elsewhere(where: str, arguments: list[str]) -> int:
    """Run this program as an ordinary user of this machine, or in a container like Docker's."""
    command = [sys.executable, str(Path(__file__)), *arguments, "--where", "here"]
    if where == "user":
        return subprocess.run(containers.as_user(command), cwd="/").returncode
    identity = {"uid": 1000, "capabilities": ""} if where == "container-user" else {}
    done = containers.run(command, timeout=3600, **identity)
    print(done.stdout + done.stderr[-2000:], end="")
    return done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--where", default="here", choices=[*PLACES, "all"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--fuzz", type=int, default=0, metavar="COUNT", help="also judge COUNT mutated messages"
    )
    parser.add_argument("--price", action="store_true", help="only time one right answer, confined and not")
    options = parser.parse_args()
    if options.price:
        print(price())
        return 0
    arguments = [*options.patterns, "--workers", str(options.workers), "--fuzz", str(options.fuzz)]
    if options.where == "all":
        return max(elsewhere(w, arguments) if w != "here" else _here(options) for w in PLACES)
    return _here(options) if options.where == "here" else elsewhere(options.where, arguments)


def _here(options: argparse.Namespace) -> int:
    from autograder.box import lockdown

    print(f"uid {os.getuid()}; Landlock {lockdown.landlock_abi()}; missing: {lockdown.missing()}", flush=True)
    start = time.monotonic()
    table, harm = run(options.patterns, options.workers)
    width = shutil.get_terminal_size((150, 20)).columns
    for line in table:
        print(f"{'ok  ' if line.ok else 'BAD '} {line.attack:<52} {line.happened:<58} {line.must}"[:width])
    for line in harm:
        print(f"BAD  {line}")
    bad = sum(not line.ok for line in table)
    seconds = time.monotonic() - start
    print(f"{len(table)} attacks, {bad} succeeded, {len(harm)} times harm; {seconds:.0f} s", flush=True)
    return int(bool(bad or harm)) | (_fuzz(options.fuzz) if options.fuzz else 0)


def price(repeats: int = 20) -> str:
    """Seconds for one right answer with and without confinement, interleaved, each with a box of its own."""
    from autograder.exercises.vector_add import ADD_TEMPLATE
    from autograder.judge import Judge

    seconds: dict[bool, list[float]] = {True: [], False: []}
    starts = {}
    with contextlib.ExitStack() as stack:
        judges = {}
        for confined in (True, False):
            begin = time.perf_counter()
            judges[confined] = stack.enter_context(Judge(confine=confined))
            judges[confined].judge("vector_add", ADD_TEMPLATE)
            starts[confined] = time.perf_counter() - begin
        for _ in range(repeats):
            for confined, judge in judges.items():
                begin = time.perf_counter()
                assert judge.judge("vector_add", ADD_TEMPLATE).passed
                seconds[confined].append(time.perf_counter() - begin)
    return "; ".join(
        f"{'confined' if confined else 'unconfined'}: first {starts[confined]:.2f} s, then a median of "
        f"{statistics.median(seconds[confined]):.3f} s"
        for confined in (True, False)
    )


def _fuzz(count: int) -> int:
    import fuzz_messages

    seen = fuzz_messages.run(count, seed=time.time_ns())
    print(f"{count} mutated messages: {seen['passed']} passed, {seen['raised']} raised")
    return int(bool(seen["passed"] or seen["raised"]))


if __name__ == "__main__":
    sys.exit(main())
