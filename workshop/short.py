"""Errors of a learner's kernel in a few lines: the line, the reason, one thing to try.

A notebook shows the short text; the whole traceback is one `%tb` away. A script shows Python's own traceback, without
the steps inside of this course, and the thing to try behind it. What Triton's front end refuses is data, a Refusal: the
judge's box sends it.
"""

import ast
import contextlib
import difflib
import inspect
import linecache
import os
import re
import sys
import sysconfig
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import triton
import triton.language as tl
from triton.compiler import CompilationError
from triton.compiler.code_generator import CodeGenerator
from triton.runtime.jit import DependenciesFinder, JITFunction

from workshop import advice
from workshop.executor import front_end
from workshop.executor.machine import Machine
from workshop.executor.program import Unsupported
from workshop.executor.records import Fault, Stopped
from workshop.notebook import interactive_shell

_FOLDERS = Path(__file__).parent, Path(triton.__file__).parents[1], Path(sysconfig.get_path("stdlib"))
LIBRARIES = tuple(f"{folder}{os.sep}" for folder in _FOLDERS)  # of files that no learner wrote
FOREIGN = {"torch", "np", "numpy", "math", "jnp"}  # whose functions are none of a kernel's
RED, BOLD, PLAIN = "\x1b[31m", "\x1b[1m", "\x1b[0m"


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

    def __str__(self) -> str:
        said = f"{self.headline}: {self.happened.removesuffix('.')}. {self.means}".strip()
        place = f"\n  line {self.line}: {self.code}" if self.line else ""
        return f"{said}{place}" + (f"\n  Try: {self.attempt}" if self.attempt else "")

    def lines(self) -> list[str]:
        """What a notebook shows of an error."""
        found = [f"{RED}{self.headline}{PLAIN}"]
        if self.line:
            shell = interactive_shell()  # it knows a cell as ("Cell", "In[5]")
            file = " ".join(shell and shell.compile.format_code_name(self.file) or [Path(self.file).name])
            found.append(f"{file}, line {self.line}:\n    {BOLD}{self.code}{PLAIN}")
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
    elif not line:
        line, code = _running(error, kernel)
    if isinstance(error, Fault):
        headline = f"{advice.VERBS[error.kind]} outside of {error.argument or 'every tensor'}"
        happened, means, attempt = advice.outside(error)
        told = happened, f"{means}{' Here nothing was written.' * (error.kind != 'load')}".strip(), attempt
    elif isinstance(error, Stopped | Unsupported):
        headline, told = advice.STOPPED[error.kind]["headline"], advice.stopped(error.kind, error.words)
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


@contextlib.contextmanager
def own_lines() -> Iterator[None]:
    """Decorates a function of the course: a notebook shows its errors with the learner's line alone, and `%tb` all."""
    try:
        yield
    except Exception as error:
        if not hasattr(error, "_render_traceback_"):
            _shorten(error, Told(f"{type(error).__name__}: {error}", "", "", "", *_own_line(error)))
        raise


def _own_line(error: Exception) -> tuple[str, int, str]:
    """The file, number and text of the learner's innermost line: where an error was raised, or on the way there."""
    frames = reversed([*traceback.walk_tb(error.__traceback__)])
    before = traceback.walk_stack(sys._getframe(1))  # a grid function raises below this frame, all others above it
    lines = ((frame.f_code.co_filename, line) for frame, line in (*frames, *before))
    file, line = next(each for each in lines if not each[0].startswith(LIBRARIES))
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


# -- what the front end refuses -----------------------------------------------------------------------------


class Refusal(NamedTuple):
    """message: Triton's. line: the innermost one of the learner's. construct, meant: see the functions of this name."""

    message: str
    line: int | None
    construct: str
    meant: str


def refusal(error: CompilationError) -> Refusal:
    """Of an error of `front_end.lower`: one for each call on the way to what Triton refuses. The last says why."""
    steps, line = [error], None
    while isinstance(steps[-1].__cause__, CompilationError):
        steps.append(steps[-1].__cause__)
    for each in steps:
        file, first = getattr(error, "places", {}).get(getattr(each, "src", None), ("", 0))
        if hasattr(getattr(each, "node", None), "lineno") and not file.startswith(front_end.LIBRARY):
            line = first + each.node.lineno
    message, node = _message(steps[-1]), getattr(steps[-1], "node", None)
    meant = _meant(message, getattr(error, "src", None) or "")
    return Refusal(message, _assigned(node, message, line), _construct(node), meant)


def _message(error: CompilationError) -> str:
    told = error if getattr(error, "error_message", None) else error.__cause__ or error
    text = str(getattr(told, "error_message", None) or told).strip()
    quoted = re.fullmatch(r"""\w+\((["'])(.*)\1\)""", text, re.S)  # the repr of an exception
    text = (quoted[2] if quoted else text) or type(told).__name__
    if text == "AssertionError":  # the name of the function says most
        frames = traceback.extract_tb(innermost(error).__traceback__)
        text = f"AssertionError in {frames[-1].name if frames else 'the compiler'}"
    return text


def _construct(node: ast.AST | None) -> str:
    """What Triton refuses: the function of a call, as it is called there, or "[…]" for an index; "" for other code."""
    if isinstance(node, ast.BinOp):  # with a value that no kernel can compute with
        calls = (ast.unparse(each.func) for each in ast.walk(node) if isinstance(each, ast.Call))
        return next((name for name in calls if name.partition(".")[0] in FOREIGN), "")
    return ast.unparse(node.func) if isinstance(node, ast.Call) else "[…]" if isinstance(node, ast.Subscript) else ""


def _assigned(node: ast.AST | None, message: str, line: int | None) -> int | None:
    """The line of a loop or condition that gives a variable another type, where Triton names the whole statement."""
    found = re.match(r"(?:Loop-carried variable|Mismatched type for|initial value for) `?(\w+)", message)
    if not line or not found or not isinstance(node, (ast.For, ast.While, ast.If)):
        return line
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    return line + max((each.lineno - node.lineno for each in names if each.id == found[1]), default=0)


def innermost(error: BaseException) -> BaseException:
    """What went wrong first. Triton's errors do not always name the one that they follow as their cause."""
    seen = set()
    while (inner := error.__cause__ or error.__context__) is not None and id(error) not in seen:
        seen.add(id(error))
        error = inner
    return error


def _meant(message: str, kernel: str) -> str:
    """For a name that the kernel uses and never defines: what it may stand for, or "-" if nothing is like it."""
    missing = re.match(r"(\w+) is not defined", message)
    try:
        names = [n for n in ast.walk(ast.parse(textwrap.dedent(kernel))) if isinstance(n, (ast.Name, ast.arg))]
    except (SyntaxError, RecursionError):
        return ""
    if not missing or any(isinstance(getattr(n, "ctx", None), ast.Store) and n.id == missing[1] for n in names):
        return ""
    if missing[1] in tl.__all__:
        return f"tl.{missing[1]}"
    known = {getattr(n, "id", getattr(n, "arg", "")) for n in names} - {missing[1]}
    return next(iter(difflib.get_close_matches(missing[1], known, 1, 0.75)), "-")
