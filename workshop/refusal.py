"""What Triton's front end refuses, as data. The judge's box sends it, and the notebook shows it."""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
import traceback
from typing import NamedTuple

import triton.language as tl
from triton.compiler import CompilationError

from workshop.executor import front_end


class Refusal(NamedTuple):
    """message: Triton's. line: the innermost of the learner's. construct: see front_end. meant: see `_meant`."""

    message: str
    line: int | None
    construct: str
    meant: str


def refusal(error: CompilationError) -> Refusal:
    message, line, _ = front_end.message(error)
    if message == "AssertionError":  # the name of the function says most
        frames = traceback.extract_tb(innermost(error).__traceback__)
        message = f"AssertionError in {frames[-1].name if frames else 'the compiler'}"
    meant = _meant(message, getattr(error, "src", None) or "")
    return Refusal(message, _assigned(error, message, line), front_end.construct(error), meant)


def _assigned(error: CompilationError, message: str, line: int | None) -> int | None:
    """The line of a loop or condition that gives a variable another type, where Triton names the whole statement."""
    while isinstance(error.__cause__, CompilationError):
        error = error.__cause__
    node = getattr(error, "node", None)
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
    """For a name that the kernel uses and never defines: what it may stand for, or "-" if nothing is like it.

    A function of tl has this name, or another name in the kernel's text is similar.
    """
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
