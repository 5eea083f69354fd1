"""One job in the child process that runs it: its request and tensors, the learner's code, and the reports."""

from __future__ import annotations

import difflib
import functools
import linecache
import mmap
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import torch
from triton.compiler import CompilationError

from workshop.executor.front_end import Unsupported
from workshop.executor.records import Fault, Stopped
from workshop.short import innermost, refusal

from ...versions import FUNCTIONS
from ..wire import Report, Trouble, to_json

ANSWER = "<answer>"  # the file name of the learner's source in tracebacks and programs
MAX_REPORT = 20_000  # bytes
MAX_TRACE = 4_000_000  # with its programs


@dataclass(frozen=True)
class Job:
    """The data of every kind of job. `request` is one of `wire.Request`."""

    backend: str
    request: Any
    tensors: memoryview
    output: mmap.mmap
    status: int

    def report(self, report: Report) -> None:
        send(self.status, report)

    def each(self, run: Callable[[Any], Report]) -> None:
        """Reports what `run` says of each case of the request, or the exception that it raises."""
        for index, case in enumerate(self.request.cases):
            try:
                report = run(case)
            except BaseException as error:  # a learner's code may raise any
                report = Report(error=describe(error))
            self.report(replace(report, case=index))

    @property
    def interpreted(self) -> bool:
        """Whether kernels run without a GPU."""
        return self.backend == "interpreter"

    @property
    def device(self) -> torch.device:
        return torch.device("cpu" if self.interpreted else "cuda")


class Refused(Exception):
    """What a host function must not do. Its text is for the learner. The others are fields of a Trouble."""

    kind = "exception"
    words = ""  # the construct
    line: int | None = None

    def __init__(self, text: str = "", **told):
        super().__init__(text)
        vars(self).update(told)


_code_of = functools.lru_cache(64)(compile)


def show_source(source: str, filename: str = ANSWER) -> None:
    """Stores the text in linecache: there a line of it can be quoted, and Triton (inspect.getsource) looks for it."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)


def load(source: str, filename: str = ANSWER) -> dict:
    """Executes `source`."""
    show_source(source, filename)
    sys.modules["answer"] = module = ModuleType("answer")  # dataclasses look up the module of a class
    exec(_code_of(source, filename, "exec"), module.__dict__)
    return module.__dict__


def learner_function(source: str, entry: str):
    """The learner's function. The judge sends only the definitions that it needs, not left-over prints."""
    function = load(source).get(entry)
    if not callable(function):
        raise Refused(entry, kind="missing-entry")
    return function


_KINDS = {SyntaxError: "syntax", IndentationError: "syntax", TabError: "syntax", MemoryError: "memory"}

# What torch says if its build has no functions for a card.
_NO_CARD = re.compile(
    r"(requires|without|support for|compiled with|linked with)\b.*\b(CUDA|HIP|ROCm)|NVIDIA driver", re.I
)

# What the zygote sees. A confined process cannot look for packages, nor load them.
INSTALLED = sys.stdlib_module_names | {each.name for each in pkgutil.iter_modules(sys.path)}


def _is_here_unloaded(error: BaseException) -> bool:
    """Whether a module is on this machine, and only cannot be loaded in a confined process."""
    name = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
    return isinstance(name, str) and sys.modules.get(name, name) is not None and name.partition(".")[0] in INSTALLED


def describe(error: BaseException) -> Trouble:
    """An exception as data: its class, its message, and the learner's line that raised it."""
    if isinstance(error, CompilationError):
        found, lacking = refusal(error), _lacking_in_triton(innermost(error))
        kind, construct = "not-in-triton" if lacking else "compile", (lacking or found.construct)[:80]
        return trouble(error, kind, found.message, found.line, construct, error, instead=found.meant)
    root = _root(error)
    named = isinstance(root, (Refused, Stopped, Unsupported))
    kind = root.kind if named else "fault" if isinstance(root, Fault) else _KINDS.get(type(root), "exception")
    line = getattr(root, "lineno", None) if kind == "syntax" else getattr(root, "line", None)
    line = line if type(line) is int and 0 < line < 1 << 31 else line_of(error) or line_of(root)
    construct = root.words if named else ""
    if kind == "exception" and _is_here_unloaded(root):
        kind, construct = "not-loaded", str(root.name)
    elif kind == "exception" and _NO_CARD.search(_message(root)):
        kind = "no-card"
    elif kind == "exception" and (lacking := _lacking_in_triton(root)):
        kind, construct = "not-in-triton", lacking
    return trouble(root, kind, _message(root), line, construct, error, fault=root if kind == "fault" else None)


def trouble(root: BaseException, kind: str, message: str, line: int | None, construct: str, error=None, **more):
    """The record. root: whose class is named. error: that knows a kernel."""
    code = linecache.getline(ANSWER, line).strip() if line else ""
    name, kernel = type(root).__name__, str(getattr(error, "kernel", ""))
    return Trouble(kind, name, message, line, code, construct, kernel=kernel, **more)


def _root(error: BaseException) -> BaseException:
    """The first exception in the chain of causes. A learner's chain may be circular."""
    seen = set()
    while error.__cause__ is not None and id(error) not in seen:
        if type(error.__cause__).__name__ == "JaxStackTraceBeforeTransformation":  # only says where, not why
            break
        seen.add(id(error))
        error = error.__cause__
    return error


def _lacking_in_triton(error: BaseException) -> str:
    """The name that is missing in this version of Triton and exists in another one, if the exception shows one."""
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        function = f"tl.{error.name}"
        return function if error.obj.__name__.startswith("triton.language") and function in FUNCTIONS else ""
    frames = traceback.extract_tb(error.__traceback__)
    language = os.path.join("", "triton", "language", "")
    inside = isinstance(error, NotImplementedError) and frames and language in frames[-1].filename
    return f"tl.{frames[-1].name}" if inside else ""


def _message(error: BaseException) -> str:
    try:
        similar = _similar_name(error)
        return f"{error}. Did you mean {similar!r}?" if similar else str(error)
    except BaseException:  # the learner's exception may do anything in __str__
        return ""


def _similar_name(error: BaseException) -> str:
    """The name that is most like the one that a NameError misses, where it was raised; "" if none is."""
    if type(error) is not NameError or not isinstance(error.name, str) or error.__traceback__ is None:
        return ""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    names = [name for name in (*frame.f_locals, *frame.f_globals) if not name.startswith("__")]
    return next(iter(difflib.get_close_matches(error.name, names, 1, 0.75)), "")


def line_of(error: BaseException) -> int | None:
    """The learner's line that raised it; None if it is not known."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == ANSWER]
    return lines[-1] if lines else None


def silence() -> None:
    """Discards prints. Without confinement they would go to the terminal or pipe of another process."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def send(status: int, report: Report) -> None:
    """Writes a report, as one line. One that is too long is replaced by an error."""
    line = to_json(report)
    if len(line) > (MAX_REPORT if report.trace is None and report.found is None else MAX_TRACE):
        line = to_json(Report(report.case, error=Trouble("report-too-large")))
    view = memoryview(line + b"\n")
    while view:
        view = view[os.write(status, view) :]
