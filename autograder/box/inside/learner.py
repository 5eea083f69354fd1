"""Loads the learner's code, and describes the exceptions that it raises.

Runs in a child of the zygote, beside the learner's code.
"""

from __future__ import annotations

import difflib
import functools
import linecache
import os
import pkgutil
import re
import sys
import traceback
from types import ModuleType

from triton.compiler import CompilationError

from workshop.executor.front_end import Unsupported
from workshop.executor.records import Fault, Stopped
from workshop.refusal import innermost, refusal

from ...answer import from_history
from ...versions import FUNCTIONS
from .. import wire
from ..wire import Trouble
from .earlier import KeptTensor
from .job import ANSWER
from .launches import BadOption, UnknownOption
from .reports import of_executor
from .trace import HostArithmetic, NotReplayable, WrongDevice
from .worlds import NotShown


class MissingEntry(Exception):
    """The answer does not define the function that the exercise asks for."""


class NotAnOperator(Exception):
    """torch does not accept the function as an operator. words: the test that it fails. line: the learner's, if known.

    Its text is the operator's name and what torch says.
    """

    line: int | None = None

    def __init__(self, words: str, operator: str = "", message: str = ""):
        super().__init__(": ".join(filter(None, (operator, message))))
        self.words = words


class OtherForm(TypeError):
    """The host function returned what is no array. `words`: the name of its type."""

    words = property(str)


# -- loading ---------------------------------------------------------------------------------------------


def load(source: str, filename: str = ANSWER, name: str = "answer") -> dict:
    """Executes `source` and stores its text in linecache, where Triton (inspect.getsource) looks for it."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    module = ModuleType(name)
    sys.modules[name] = module  # dataclasses look up the module of a class
    exec(_code_of(source, filename), module.__dict__)
    return module.__dict__


@functools.lru_cache(64)
def _code_of(source: str, filename: str):
    return compile(source, filename, "exec")


@functools.lru_cache(64)
def _needed(source: str, entry: str) -> str:
    """What the function needs of the source."""
    return from_history([source], [entry]) or source


def learner_function(source: str, entry: str):
    """The learner's function. Only the definitions that it needs are executed, not left-over prints or benchmarks."""
    function = load(_needed(source, entry)).get(entry)
    if not callable(function):
        raise MissingEntry(entry)
    return function


# -- exceptions ------------------------------------------------------------------------------------------

_KINDS = {
    Fault: "fault",
    HostArithmetic: "host-arithmetic",
    NotReplayable: "not-replayable",
    KeptTensor: "kept",
    WrongDevice: "wrong-device",
    NotShown: "not-shown",
    BadOption: "launch-option",
    MissingEntry: "missing-entry",
    OtherForm: "returned",
    NotAnOperator: "operator",
    SyntaxError: "syntax",
    IndentationError: "syntax",
    TabError: "syntax",
    MemoryError: "memory",
}


# What torch says if its build has no functions for a card.
_NO_CARD = re.compile(
    r"(requires|without|support for|compiled with|linked with)\b.*\b(CUDA|HIP|ROCm)|NVIDIA driver", re.I
)


INSTALLED: set[str] = set(sys.stdlib_module_names)  # the zygote adds the other packages, while it can see them


def find_installed() -> None:
    """Notes which packages are installed: a confined process cannot look for them, nor load them."""
    INSTALLED.update(each.name for each in pkgutil.iter_modules(sys.path))


def _is_here_unloaded(error: BaseException) -> bool:
    """Whether a module is on this machine, and only cannot be loaded in a confined process."""
    name = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
    return isinstance(name, str) and sys.modules.get(name, name) is not None and name.partition(".")[0] in INSTALLED


def describe(error: BaseException) -> Trouble:
    """An exception as data: its class, its message, and the learner's line that raised it."""
    if isinstance(error, CompilationError):
        return _refused(error)
    root = _root(error)
    stopped = isinstance(root, (Stopped, Unsupported))
    kind = root.kind if stopped else _KINDS.get(type(root), "exception")
    line = getattr(root, "lineno", None) if kind == "syntax" else getattr(root, "line", None)
    line = line if type(line) is int and 0 <= line < 1 << 31 else line_of(error) or line_of(root)
    construct = root.words if stopped or kind in ("returned", "operator") else ""
    if kind == "exception" and _is_here_unloaded(root):
        kind, construct = "not-loaded", str(root.name)
    elif kind == "exception" and _NO_CARD.search(_message(root)):
        kind = "no-card"
    elif kind == "exception" and (lacking := _lacking_in_triton(root)):
        kind, construct = "not-in-triton", lacking
    return Trouble(
        kind=kind,
        type=type(root).__name__[:80],
        message=_message(root)[:2000],
        line=line,
        code=_code(line),
        construct=construct[:400],
        kernel=str(getattr(error, "kernel", ""))[:100],
        fault=of_executor(wire.Fault, root) if kind == "fault" else None,
    )


def _refused(error: CompilationError) -> Trouble:
    """What Triton's front end refuses."""
    found, lacking = refusal(error), _lacking_in_triton(innermost(error))
    return Trouble(
        kind="not-in-triton" if lacking else "compile",
        type=type(error).__name__[:80],
        message=found.message[:2000],
        line=found.line,
        code=_code(found.line),
        construct=(lacking or found.construct)[:80],
        instead=found.meant,
        kernel=str(getattr(error, "kernel", ""))[:100],
    )


def _code(line: int | None) -> str:
    return linecache.getline(ANSWER, line).strip()[:200] if line else ""


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
    if isinstance(error, UnknownOption):
        return error.option if error.elsewhere else ""
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
