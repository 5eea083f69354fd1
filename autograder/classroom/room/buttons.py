"""The buttons of the instructor's page: the commands behind each, and a run of them with what they print."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ...text import visible
from .. import interrupt

LINES, LONGEST = 400, 500  # that are kept of a run: lines, characters of a line


@dataclass(frozen=True)
class Step:
    """A button: its words, the commands behind it, and whether it asks which lesson.

    `confirm` is asked before it is pressed; `files` of the course are what it makes, to download.
    """

    label: str
    commands: Sequence[Sequence[str]]
    asks: bool = False
    confirm: str = ""
    files: Sequence[str] = ()

    @property
    def shown(self) -> str:
        """Its commands, as one would type them."""
        return " && ".join(f"autograder {' '.join(command)}" for command in self.commands)


STEPS = {
    "release": Step("Release", [["exchange", "release"]], asks=True),
    "collect": Step("Collect", [["exchange", "collect"]]),
    "grade": Step("Grade", [["grade"]]),
    "give-back": Step(
        "Give feedback back",
        [["feedback"], ["exchange", "give-back"]],
        confirm="Give feedback back? Attendees can read the points and the pages of everything that is graded.",
    ),
    "export": Step("Export grades", [["export"]], files=("grades.csv", "exercises.csv")),
}


@dataclass
class Run:
    """A pressed button: the commands, what they printed, when. status: None while it runs.

    `makes` are files in `course` that the commands write, and `stopping` says that somebody pressed Stop.
    """

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
    def id(self) -> str:
        return f"{self.began.timestamp():.6f}"

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
            if self.stopping:
                status = interrupt.STOPPED
                break
            self.lines.append(f"$ autograder {visible(shlex.join(command), LONGEST)}")
            status = await self._one(command, alive)
            if status:
                break
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
