"""Errors of a learner's kernel in a few lines: the line, the reason, one thing to try.

A notebook shows the short text; the whole traceback is one `%tb` away. A script shows Python's own traceback, without
the steps inside of this course, and the thing to try behind it.
"""

from __future__ import annotations

import inspect
import linecache
import os
import sys
import traceback
from pathlib import Path

import triton
from triton.compiler import CompilationError
from triton.compiler.code_generator import CodeGenerator
from triton.runtime.jit import DependenciesFinder, JITFunction

from workshop.advice import COMPARE, meaning, readable
from workshop.executor import front_end
from workshop.executor.machine import Machine
from workshop.executor.records import DeviceAssert, FalsePromise, Fault, IllegalInstruction, NeverEnds

LIBRARIES = tuple(str(Path(file).parent) + os.sep for file in (triton.__file__, __file__))
VERBS = {"load": ("reads", "read"), "store": ("writes", "write over"), "atomic": ("changes", "change")}
RED, BOLD, PLAIN = "\x1b[31m", "\x1b[1m", "\x1b[0m"


def of_a_kernel(error: BaseException, kernel: JITFunction) -> None:
    """Give an error its short text. kernel: what was launched."""
    file = kernel.fn.__code__.co_filename
    line, code = getattr(error, "line", None), getattr(error, "code", "")
    if isinstance(error, CompilationError):
        text, line, _ = front_end.message(error)
        text = readable(text)
        code = linecache.getline(file, line).strip() if line else ""
        told = "is not accepted by Triton", text, _attempt(text, front_end.construct(error))
    else:
        if line is None:
            line, code = _running(error, kernel)
        told = _told(error)
    what, reason, attempt = told
    where = f"{_file(file)}, line {line}" if line else ""
    _fold(error, f"{kernel.fn.__name__} {what}", where, code, reason, attempt)


def of_a_launch(error: Exception, kernel: str) -> None:
    """The same for an error in the arguments or in the grid: the line is the innermost one of the learner's."""
    frames, trace = [], error.__traceback__
    while trace:  # a grid function raises below this frame, all others above it
        frames.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    frame = sys._getframe(1)
    while frame:
        frames.insert(0, (frame, frame.f_lineno))
        frame = frame.f_back
    own = [(frame, line) for frame, line in frames if not frame.f_code.co_filename.startswith(LIBRARIES)]
    file, line = own[-1][0].f_code.co_filename, own[-1][1]
    text = str(error) if type(error) in (TypeError, ValueError) else f"{type(error).__name__}: {error}"
    code = linecache.getline(file, line).strip()
    where = f"{_file(file)}, line {line}"
    _fold(error, f"{kernel} was not launched", where, code, text, _attempt(text))


def _attempt(text: str, construct: str = "") -> str:
    """One thing to try for what Triton or Python says."""
    return meaning(text, construct)[1] or COMPARE


def _told(error: BaseException) -> tuple[str, str, str]:
    """What happened, why, and what to try."""
    if isinstance(error, Fault):
        return f"{VERBS[error.kind][0]} outside of {error.argument or 'every tensor'}", *_outside(error)
    program = f"in program {_program(error.program)}" if getattr(error, "program", None) else ""
    if isinstance(error, FalsePromise):
        return (
            f"breaks a promise {program}",
            f"{error.promise} is not true here. On a GPU the compiler believes it, and the result is wrong.",
            "take the promise out, or make it true for every program.",
        )
    if isinstance(error, NeverEnds):
        attempt = "change in each round what the loop asks for, such as i += 1."
        return f"never ends {program}", f"{error.why[:1].upper()}{error.why[1:]}.", attempt
    if isinstance(error, IllegalInstruction):
        attempt = "begin at a multiple of 16 bytes, or read with tl.load and a mask."
        return f"stops the GPU {program}", f"An illegal instruction: {error.words}.", attempt
    if isinstance(error, DeviceAssert):
        attempt = 'look at the values: tl.device_print("value", value) above this line.'
        return f"stopped {program}", f"Its assertion failed{f': {error.message}' if error.message else '.'}", attempt
    if isinstance(error, front_end.Unsupported):
        return "was not run", f"{error}.", "run it on a GPU, or write this step in another way."
    if isinstance(error, KeyboardInterrupt):
        return "was interrupted", "", ""
    return "is not accepted by Triton", str(error), _attempt(str(error))


def _outside(fault: Fault) -> tuple[str, str]:
    """Which lanes of which program reached where, why, and what to try."""
    (verb, infinitive), one = VERBS[fault.kind], not fault.block
    first = fault.lane[0] if len(fault.lane) == 1 else fault.lane
    lanes = "" if one else f" in {fault.lanes} lane{'s' * (fault.lanes != 1)}, the first is lane {first}"
    happened = f"Program {_program(fault.program)} {verb} outside{lanes}"
    harmless = f"On a GPU it would {infinitive} other data.{' Here nothing was written.' * (fault.kind != 'load')}"
    if fault.argument is None:
        reason = f"{happened}, at an address that is in no tensor. {harmless}"
        return reason, "begin with a parameter that is a pointer, and add offsets to it: x_ptr + offsets."
    if fault.place == "gap":
        place = f"row {fault.index[0]}, column {fault.index[-1]}, in the gap between the rows"
    else:
        place = f"element {fault.element}, {fault.distance} {fault.place}"
    shape = f"{fault.argument} has shape {fault.shape} and strides {fault.stride}."
    if fault.shape and fault.stride == (1,):
        shape = f"{fault.argument} has {fault.shape[0]} element{'s' * (fault.shape[0] != 1)}."
    words = f"{happened}: at {place}. {shape} {harmless}"
    if one:
        return words, "check the number that is added to the pointer, for the first program and for the last one."
    if fault.place == "gap":
        return words, "step from row to row by the stride of that tensor, x.stride(0), and mask the columns."
    if fault.place == "past the end" and any(fault.lane):
        return words, "give this access a mask that is true only for elements of the tensor: mask=offsets < n."
    return words, "check the numbers that are added to the pointer, and the mask of this access."


def _program(place: tuple[int, ...]) -> str:
    """A program's place in its launch grid, without trailing zeros."""
    while len(place) > 1 and place[-1] == 0:
        place = place[:-1]
    return str(place[0]) if len(place) == 1 else str(place)


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
    interactive = sys.modules.get("IPython")
    shell = interactive and interactive.get_ipython()
    cell = shell.compile.format_code_name(name) if shell else None
    return " ".join(cell) if cell else Path(name).name


def _fold(error: BaseException, what: str, where: str, code: str, reason: str, attempt: str) -> None:
    """Give an error its short text, and take the frames inside of this course away."""
    lines = [f"{RED}{what}{PLAIN}"]
    lines += [f"{where}:\n    {BOLD}{code}{PLAIN}"] if where else []
    lines += [reason] if reason else []
    lines += [f"{BOLD}Try:{PLAIN} {attempt}"] if attempt else []
    lines += ["(%tb shows the whole traceback.)"]

    def render() -> list[str]:
        """What IPython asks for. The next time it is `%tb`, which gets what other errors have."""
        del error._render_traceback_
        return lines

    error._render_traceback_ = render
    error.__traceback__ = None
    if attempt:
        error.add_note(f"Try: {attempt}")
