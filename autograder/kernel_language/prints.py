"""Prints and assertions: the clean copy leaves them out, so this module says what a compiler refuses in them.

A compiler needs the text of a print when it compiles. An f-string may hold constants, and no value of the running
kernel. The text is the first argument, and the values come after it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

COMPILE_TIME = {"tl.cdiv", "tl.next_power_of_2", "tl.constexpr", "cdiv", "next_power_of_2", "abs", "max", "min"}
PRINTS = {"print", "tl.device_print"}  # Python's is the same as Triton's in a kernel


def refused(
    node: ast.Call | ast.Assert, function: ast.FunctionDef, constants: set[str], callee: Callable
) -> tuple[str, str] | None:
    """What a compiler refuses in a print or an assertion, and what to write instead; None if nothing.

    function: the kernel. constants: names outside of its body with a value that the compiler knows. callee: the name of
    a called function, such as "tl.load".
    """
    constants = constants | _own_constants(function, callee)
    texts = [each for each in ast.walk(node) if isinstance(each, ast.JoinedStr)]
    for value in (each.value for text in texts for each in text.values if isinstance(each, ast.FormattedValue)):
        if not _is_constant(value, constants, callee):
            name = ast.unparse(value)[:40]
            return f"an f-string with `{name}`, a value of the running kernel,", _print_of(name)
    if isinstance(node, ast.Call) and callee(node.func) in PRINTS and not (node.args and _is_text(node.args[0])):
        name = ast.unparse(node.args[0])[:40] if node.args else "x"
        return "a print that does not begin with a text", _print_of(name)
    return None


def _print_of(name: str) -> str:
    return f'write `tl.device_print("{name}", {name})`'


def _is_text(expression: ast.expr) -> bool:
    parts = ast.walk(expression)
    return any(isinstance(each, ast.JoinedStr) or type(getattr(each, "value", None)) is str for each in parts)


def _own_constants(function: ast.FunctionDef, callee: Callable) -> set[str]:
    """The variables that stay constants in a kernel: `H: tl.constexpr = …`, and the numbers of an unrolled loop."""

    def called(node) -> str | None:
        return callee(node.func) if isinstance(node, ast.Call) else None

    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).strip("'\"").endswith("constexpr"):
            found.add(getattr(node.target, "id", ""))
        elif isinstance(node, ast.Assign) and called(node.value) == "tl.constexpr":
            found |= {getattr(target, "id", "") for target in node.targets}
        elif isinstance(node, ast.For) and called(node.iter) == "tl.static_range":
            found.add(getattr(node.target, "id", ""))
    return found


def _is_constant(expression: ast.expr, constants: set[str], callee: Callable) -> bool:
    calls = [each for each in ast.walk(expression) if isinstance(each, ast.Call)]
    functions = {each for call in calls for each in ast.walk(call.func)}
    names = [n for n in ast.walk(expression) if isinstance(n, ast.Name) and n not in functions]
    return all(callee(call.func) in COMPILE_TIME for call in calls) and all(n.id in constants for n in names)
