"""The instructor's page of a room: who is where, and buttons for release, collect, grade, feedback and grades.

An extension of the instructor's own Jupyter server: docker/hub/instructor/ switches it on, at /room of that server.
JupyterHub lets nobody else in there. Each button runs the commands that one would type in a terminal of that server.
"""

import asyncio
import contextlib
import functools
import json
import os
import secrets
import shlex
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

from ...text import many, visible
from .. import interrupt
from ..course import write_atomically
from ..intake.systems import SYSTEMS
from ..lms.filled import MOODLE_ZIP
from ..templates import template
from .exchange import how_far

RUNS = 8  # that are kept
READING = 30  # seconds that reading the attendees' files may take
LINES, LONGEST = 400, 500  # that are kept of a run: lines, characters of a line
TABLES = (".csv", ".xls", ".txt")  # what an LMS calls its table


@dataclass(frozen=True)
class Step:
    """A button: its commands, whether it asks for a lesson, a question before, and the files that it makes."""

    label: str
    commands: Sequence[Sequence[str]]
    asks: bool = False
    confirm: str = ""
    files: Sequence[str] = ()

    @property
    def shown(self) -> str:
        """Its commands, as one would type them."""
        return " && ".join(f"autograder {' '.join(command)}" for command in self.commands)


PUBLISHES = "Give feedback back? Attendees can read the points and the pages of everything that is graded."
STEPS = {
    "release": Step("Release", [["exchange", "release"]], asks=True),
    "collect": Step("Collect", [["exchange", "collect"]]),
    "grade": Step("Grade", [["grade"]]),
    "give-back": Step("Give feedback back", [["feedback"], ["exchange", "give-back"]], confirm=PUBLISHES),
    "export": Step("Export grades", [["export"]], files=("grades.csv", "exercises.csv")),
}


@dataclass
class Run:
    """A pressed button: its commands and what they print. `makes` are files in `course`. status: None while it runs."""

    label: str
    commands: list[list[str]]
    course: Path = Path()
    makes: Sequence[str] = ()
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended: datetime | None = None
    status: int | None = None
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LINES))
    stopping: bool = False
    _process: asyncio.subprocess.Process | None = None

    @property
    def stopped(self) -> bool:
        """It ended because somebody pressed Stop, and not on its own."""
        return self.stopping and self.status in (interrupt.STOPPED, -signal.SIGINT)

    @property
    def files(self) -> list[str]:
        """What it made, once it has ended. The Jupyter server, whose folder is the course, serves them."""
        began = self.began.timestamp() - 1  # a file system's clock may be coarse
        there = [name for name in self.makes if self.ended and (self.course / name).is_file()]
        return [name for name in there if (self.course / name).stat().st_mtime >= began]

    @property
    def took(self) -> str:
        seconds = ((self.ended or datetime.now(UTC)) - self.began).total_seconds()
        return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"

    @property
    def how(self) -> tuple[str, str]:
        """A colour, and words. Exit status 1 is what the commands say if a person must look."""
        if self.stopped:
            return "some", "stopped, what was finished is kept"
        if self.status is None:
            return "", "stopping" if self.stopping else "running"
        known = {0: ("good", "done"), 1: ("some", "done, but something waits for you")}
        return known.get(self.status, ("bad", f"failed, exit status {self.status}"))

    def stop(self) -> None:
        """End it as Ctrl-C does: the command keeps what it has finished, and says so."""
        self.stopping = True
        if self._process and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                # Its send_signal would poll first, and so take the exit status away from asyncio.
                os.kill(self._process.pid, signal.SIGINT)

    async def go(self, alive: Callable[[], None]) -> None:
        """Run the commands, each only if the one before ended well. alive() is called at each sign of life."""
        status = 0
        for command in self.commands:
            if status or self.stopping:
                status = status or interrupt.STOPPED
                break
            self.lines.append(f"$ autograder {visible(shlex.join(command), LONGEST)}")
            status = await self._one(command, alive)
        self.ended, self.status = datetime.now(UTC), status

    async def _one(self, command: list[str], alive: Callable[[], None]) -> int:
        try:
            with interrupt.held():  # Stop may come while Python starts
                self._process = process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-u", "-m", "autograder.cli", *command),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                )
            if self.stopping:  # pressed while the process was being made
                self.stop()
            rest = b""
            while chunk := await process.stdout.read(65_536):
                alive()
                *whole, rest = (rest + chunk).split(b"\n")
                self.lines.extend(visible(line.decode(errors="replace"), LONGEST) for line in whole if line)
                rest = rest[-4 * LONGEST :]  # bytes
            self.lines.extend([visible(rest.decode(errors="replace"), LONGEST)] if rest else [])
            return await process.wait()
        except OSError as error:
            self.lines.append(f"not started: {error}")
            return 1
        finally:
            self._process = None


def whole(room: Mapping, base_url: str, xsrf: str, hub_url: str, nonce: str) -> str:
    """The whole page. base_url: this server's; xsrf: the hidden field that it asks for; hub_url: "" without a hub."""
    busy = bool(room["runs"]) and room["runs"][0].status is None
    about = {"xsrf": xsrf, "hub_url": hub_url, "nonce": nonce, "busy": busy, "steps": STEPS, "systems": SYSTEMS}
    return template("desk.html").render(room=room, base_url=base_url, **about, **_IN_BOTH)


def live(room: Mapping, base_url: str = "/") -> str:
    """The part that changes: the runs, and the table of attendees and lessons."""
    return template("desk_live.html").make_module({"room": room, "base_url": base_url} | _IN_BOTH).live()


def _mark(name: str, one: dict) -> tuple[str, object, str]:
    """How an attendee stands with an exercise: a kind, a sign, and words."""
    seen = one["exercises"].get(name)
    if seen is None:
        return "open", "·", "not begun"
    if seen["passed"]:
        return "passed", "✓", "passed"
    if not seen["failed"]:
        return "open", "…", "begun"
    words = many(seen["failed"], "failed check", "failed checks")
    return "stuck" if name in one["stuck"] else "failing", seen["failed"], words


_IN_BOTH = {"counted": many, "mark": _mark, "visible": visible}  # templates


class Desk:
    """What the page shows, and the one run at a time. `alive` is called while it prints: this server is not idle."""

    def __init__(self, room: Path, alive: Callable[[], None] = lambda: None) -> None:
        self.room, self.alive = room, alive
        self.runs: deque[Run] = deque(maxlen=RUNS)  # the newest first
        self._going: asyncio.Task | None = None

    @property
    def busy(self) -> bool:
        return self._going is not None and not self._going.done()

    def start(self, name: str, lesson: str = "") -> None:
        """Press a button. KeyError for one that there is not."""
        step = STEPS[name]
        only = [f"--assignment={lesson}"] if step.asks and lesson else []
        commands = [[*command, *only] for command in step.commands]
        self._go(Run(f"{step.label} {lesson}".strip(), commands, self.room / "course", step.files))

    def fill(self, system: str, name: str, table: bytes, columns: Mapping[str, str], scale: bool) -> None:
        """Fill the table that an LMS exported. name: the file's; columns: lesson -> title. OSError if none can be.

        The table and what becomes of it are in exports/ of the course, beside grades.csv.
        """
        folder, suffix = self.room / "course" / "exports", Path(name).suffix.lower()
        suffix = suffix if suffix in TABLES else TABLES[0]
        table_here = folder / f"from-{system}{suffix}"
        write_atomically(table_here, table)
        command = ["export", "--for", system, "--into", str(table_here), "--to", str(folder)]
        command += [f"--column={lesson}={title}" for lesson, title in columns.items()] + ["--scale"] * scale
        makes = [f"exports/{system}{suffix}"] + [f"exports/{MOODLE_ZIP}"] * (system == "moodle")
        self._go(Run(f"Grades for {SYSTEMS[system].name}", [command], self.room / "course", makes))

    def _go(self, run: Run) -> None:
        self.runs.appendleft(run)
        self._going = asyncio.create_task(run.go(self.alive))

    def stop(self) -> None:
        """Press Stop: what runs ends as Ctrl-C would end it. Nothing happens if nothing runs."""
        if self.busy:
            self.runs[0].stop()

    async def seen(self) -> dict:
        """What `workshop attendees --json` says: another process reads what attendees wrote, without torch."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "workshop.cli", "attendees", "--json"),
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"ROOM": str(self.room)},
        )
        try:
            said, _ = await asyncio.wait_for(process.communicate(), READING)
        except TimeoutError:
            process.kill()
            raise web.HTTPError(503, "reading the attendees' progress took too long") from None
        if process.returncode:
            raise web.HTTPError(500, "`workshop attendees` failed; this server's log says why")
        return json.loads(said)

    async def state(self) -> dict:
        """What the page shows now: what is seen, how far each lesson is in the exchange, and the runs."""
        seen = await self.seen()
        progress = await asyncio.to_thread(how_far, self.room, list(seen["lessons"]))
        return seen | {"lessons_are": progress, "runs": list(self.runs)}


class _Handler(JupyterHandler):
    """What the addresses share. Nothing of another machine is loaded, and only this page's own script runs."""

    @property
    def desk(self) -> Desk:
        return self.settings["workshop_desk"]

    @functools.cached_property
    def nonce(self) -> str:
        return secrets.token_urlsafe(16)

    @property
    def content_security_policy(self) -> str:
        ours = f"script-src 'nonce-{self.nonce}'; style-src 'unsafe-inline'; connect-src 'self'; form-action 'self'"
        return f"default-src 'none'; {ours}; base-uri 'none'; frame-ancestors 'none'"


class PageHandler(_Handler):
    @web.authenticated
    async def get(self, part: str | None) -> None:
        self.set_header("Cache-Control", "no-store")
        state, hub_url = await self.desk.state(), os.environ.get("JUPYTERHUB_BASE_URL", "")
        page = (state, self.base_url, self.xsrf_form_html(), hub_url, self.nonce)
        self.finish(live(state, self.base_url) if part else whole(*page))


class PressHandler(_Handler):
    """What a button sends. Afterwards its reader is back on the page."""

    @web.authenticated
    async def post(self, what: str) -> None:
        lesson = self.get_body_argument("lesson", "")
        if what == "stop":
            self.desk.stop()
        elif lesson and lesson not in (await self.desk.seen())["lessons"]:
            raise web.HTTPError(400, f"found the lesson {lesson!r}; expected one of the course")
        elif self.desk.busy:
            raise web.HTTPError(409, f"{self.desk.runs[0].label} still runs; wait until it has ended")
        elif what == "fill":
            self.fill(lesson)
        elif (name := self.get_body_argument("step")) in STEPS:
            self.desk.start(name, lesson)
        else:
            raise web.HTTPError(400, f"found the step {name!r}; expected a button's")
        self.redirect(url_path_join(self.base_url, "room"))

    def fill(self, lesson: str) -> None:
        system = self.get_body_argument("system")
        table = next(iter(self.request.files.get("table", [])), None)
        if system not in SYSTEMS or table is None:
            raise web.HTTPError(400, f"found the system {system!r}; expected a known one, and the CSV that it exported")
        title = self.get_body_argument("column", "") or SYSTEMS[system].grades.get("only_score", "")
        if lesson and not title:
            raise web.HTTPError(400, f"expected the title of the column of {lesson} in {SYSTEMS[system].name}'s file")
        columns, scale = {lesson: title} if lesson else {}, bool(self.get_body_argument("scale", ""))
        try:
            self.desk.fill(system, table["filename"], table["body"], columns, scale)
        except OSError as error:
            raise web.HTTPError(500, f"the file cannot be kept: {error.strerror}") from None


def _jupyter_server_extension_points() -> list[dict]:
    return [{"module": "autograder.classroom.room.desk"}]


def _load_jupyter_server_extension(server) -> None:
    settings = server.web_app.settings
    room = Path(os.environ.get("ROOM", "/srv/workshop"))
    settings["workshop_desk"] = Desk(room, lambda: settings.update(api_last_activity=datetime.now(UTC)))
    addresses = {"room(/live)?": PageHandler, "room/(run|stop|fill)": PressHandler}
    base = settings["base_url"]
    server.web_app.add_handlers(".*", [(url_path_join(base, at), handler) for at, handler in addresses.items()])
