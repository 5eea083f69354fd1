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

FOREIGN = {"torch", "np", "numpy", "math", "jnp"}  # whose functions are none of a kernel's


class Refusal(NamedTuple):
    """message: Triton's. line, column: of the innermost line of the learner's. construct: see `_construct`. meant: see
    `_meant`.
    """

    message: str
    line: int | None
    column: int | None
    construct: str
    meant: str


def refusal(error: CompilationError) -> Refusal:
    """Of an error of `front_end.lower`: one for each call on the way to what Triton refuses. The last says why."""
    steps, line, column = [error], None, None
    while isinstance(steps[-1].__cause__, CompilationError):
        steps.append(steps[-1].__cause__)
    for each in steps:
        file, first = getattr(error, "places", {}).get(getattr(each, "src", None), ("", 0))
        if hasattr(getattr(each, "node", None), "lineno") and not file.startswith(front_end.LIBRARY):
            line, column = first + each.node.lineno, each.node.col_offset
    message, node = _message(steps[-1]), getattr(steps[-1], "node", None)
    meant = _meant(message, getattr(error, "src", None) or "")
    return Refusal(message, _assigned(node, message, line), column, _construct(node), meant)


def _message(error: CompilationError) -> str:
    """What Triton says."""
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
