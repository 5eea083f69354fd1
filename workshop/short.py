"""Errors of a learner's kernel in a few lines: the line, the reason, one thing to try.

A notebook shows the short text; the whole traceback is one `%tb` away. A script shows Python's own traceback, without
the steps inside of this course, and the thing to try behind it.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import triton
from triton.compiler import CompilationError
from triton.compiler.code_generator import CodeGenerator
from triton.runtime.jit import DependenciesFinder, JITFunction

from workshop import advice
from workshop.executor.machine import Machine
from workshop.executor.program import Unsupported
from workshop.executor.records import Fault, Stopped
from workshop.notebook import interactive_shell
from workshop.refusal import refusal

_FOLDERS = Path(__file__).parent, Path(triton.__file__).parents[1], Path(sysconfig.get_path("stdlib"))
LIBRARIES = tuple(f"{folder}{os.sep}" for folder in _FOLDERS)  # of files that no learner wrote
RED, BOLD, PLAIN = "\x1b[31m", "\x1b[1m", "\x1b[0m"
# What a kernel does that the executor stops, by the kind of its error.
HEADLINES = {"false-promise": "breaks a promise", "never-ends": "never ends", "device-assert": "stopped",
             "illegal-instruction": "stops the GPU", "not-allowed": "was not run"}  # fmt: skip


@dataclass(frozen=True)
class Told:
    """An error in short. happened, means, attempt: as workshop.advice has them. line and code: the learner's."""

    headline: str
    happened: str = ""
    means: str = ""
    attempt: str = ""
    file: str = ""
    line: int | None = None
    code: str = ""

    def lines(self) -> list[str]:
        """What a notebook shows."""
        found = [f"{RED}{self.headline}{PLAIN}"]
        found += [f"{_file(self.file)}, line {self.line}:\n    {BOLD}{self.code}{PLAIN}"] if self.line else []
        found += filter(None, (self.happened, self.means))
        return found + ([f"{BOLD}Try:{PLAIN} {self.attempt}"] if self.attempt else [])


def of_a_kernel(error: BaseException, kernel: JITFunction, headline: str = "is not accepted by Triton") -> Told:
    """Give an error its short text. kernel: what was launched. headline: for what a compiler refuses."""
    file = kernel.fn.__code__.co_filename
    line, code = getattr(error, "line", None), getattr(error, "code", "")
    told = ()
    if isinstance(error, CompilationError):
        found = refusal(error)
        line, told = found.line, advice.refused(found.message, found.construct, found.meant)
        code = linecache.getline(file, line).strip() if line else ""
    elif line is None:
        line, code = _running(error, kernel)
    if isinstance(error, Fault):
        headline = f"{advice.VERBS[error.kind]} outside of {error.argument or 'every tensor'}"
        happened, means, attempt = advice.outside(error)
        told = happened, f"{means}{' Here nothing was written.' * (error.kind != 'load')}".strip(), attempt
    elif isinstance(error, Stopped | Unsupported):
        headline, told = HEADLINES[error.kind], advice.stopped(error.kind, error.words)
    elif isinstance(error, KeyboardInterrupt):
        headline = "was interrupted"
    elif not told:
        told = advice.refused(str(error))
    if getattr(error, "program", None):
        headline += f" in program {advice.program_in_words(error.program)}"
    return fold(error, Told(f"{kernel.fn.__name__} {headline}", *told, file=file, line=line, code=code))


def of_a_launch(error: Exception, kernel: str) -> None:
    """The same for an error in the arguments or in the grid: the line is the innermost one of the learner's."""
    text = f"{type(error).__name__}: {error}"
    means, attempt = advice.meaning(text)
    happened = str(error) if type(error) in (TypeError, ValueError) else text
    fold(error, Told(f"{kernel} was not launched", happened, means, attempt or advice.COMPARE, *_own_line(error)))


def own_lines(function: Callable) -> Callable:
    """Wraps a function of the course: a notebook shows its errors with the learner's line alone, and `%tb` all."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not hasattr(error, "_render_traceback_"):
                _shorten(error, Told(f"{type(error).__name__}: {error}", "", "", "", *_own_line(error)))
            raise

    return called


def _own_line(error: Exception) -> tuple[str, int, str]:
    """The file, number and text of the learner's innermost line: where an error was raised, or on the way there."""
    frames = [*traceback.walk_tb(error.__traceback__)]
    before = [*traceback.walk_stack(sys._getframe(1))]  # a grid function raises below this frame, all others above it
    own = [each for each in (*reversed(frames), *before) if not each[0].f_code.co_filename.startswith(LIBRARIES)]
    file, line = own[0][0].f_code.co_filename, own[0][1]
    return file, line, linecache.getline(file, line).strip()


def _running(error: BaseException, kernel: JITFunction) -> tuple[int | None, str]:
    """The learner's line that was run or read when the error was raised, and its text."""
    for frame, _ in reversed([*traceback.walk_tb(error.__traceback__)]):
        who, node = frame.f_locals.get("self"), frame.f_locals.get("node")
        if isinstance(who, Machine):
            return who.memory.text(who.where)
        if isinstance(who, CodeGenerator) and hasattr(node, "lineno") and not who.file_name.startswith(LIBRARIES):
            line = who.begin_line + node.lineno
            return line, linecache.getline(who.file_name, line).strip()
        if isinstance(who, DependenciesFinder) and hasattr(node, "lineno") and who.name.endswith(kernel.fn.__name__):
            lines, first = inspect.getsourcelines(kernel.fn)
            number = node.lineno - 1 + next(i for i, line in enumerate(lines) if line.lstrip().startswith("def "))
            return first + number, lines[number].strip()
    return None, ""


def _file(name: str) -> str:
    """What a learner calls a file: Cell In[5], or its name."""
    shell = interactive_shell()
    cell = shell.compile.format_code_name(name) if shell else None
    return " ".join(cell) if cell else Path(name).name


def fold(error: BaseException, told: Told) -> Told:
    """Give an error its short text, and take the frames inside of this course away."""
    _shorten(error, told)
    error.told, error.__traceback__ = told, None
    if told.attempt:
        error.add_note(f"Try: {told.attempt}")
    return told


def _shorten(error: BaseException, told: Told) -> None:
    def render() -> list[str]:
        """What IPython asks for. The next time it is `%tb`, which gets what other errors have."""
        del error._render_traceback_
        return [*told.lines(), "(%tb shows the whole traceback.)"]

    error._render_traceback_ = render
