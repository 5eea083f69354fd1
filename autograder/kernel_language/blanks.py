"""Exercises with blanks: puts a learner's expression for one blank into the solution's kernel."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable

from .clean import kernels_of
from .module import Module, literal, parse, shorten
from .page import Page
from .records import KernelSource, NotAllowed, Restructured
from .words import BUILTINS


def blank_expressions(source: str, kernel: str, names: Iterable[str], template: str) -> dict[str, str | NotAllowed]:
    """The learner's expression for each blank of a placeholder exercise.

    A blank is the right-hand side of the first assignment to its name in `template`'s kernel that is more
    than a constant; the blank "store" is the first `tl.store(...)`. The learner's counterpart is the
    assignment at the same position among the assignments to that name. Constants of the learner's module are
    replaced by their numbers. A blank whose expression is not allowed has the NotAllowed error as its value.
    Raises Restructured if the learner's kernel does not have the same assignments, and NotAllowed if the kernel
    around the blanks is not allowed.
    """
    names = list(names)
    learner, refused = _without_refused(source, kernel, names)
    ours = kernels_of(template, [kernel])
    found = {}
    for name in names:
        theirs, places = _places(_function(learner, kernel), name), _places(_function(ours, kernel), name)
        position = _position(places, name, ours)
        if name != "store" and len(theirs) != len(places) or len(theirs) <= position:
            raise Restructured(f"`{name}` is not assigned where the starter assigns it")
        text = ast.unparse(_Literals(learner.constants).visit(theirs[position].value))
        found[name] = refused.get(name, text)
    return found


def _without_refused(source: str, kernel: str, names: list[str]) -> tuple[KernelSource, dict[str, NotAllowed]]:
    """The kernel, with a 0 in each blank that the language refuses, and the error for each of these blanks."""
    refused: dict[str, NotAllowed] = {}
    while True:
        try:
            return kernels_of(source, [kernel]), refused
        except NotAllowed as error:
            place = _blank_on_line(source, kernel, names, error.line)
            if place is None or place[0] in refused:
                raise
            name, value = place
            refused[name] = error
            source = _with_zero(source, value)


def _blank_on_line(source: str, kernel: str, names: list[str], line: int) -> tuple[str, ast.expr] | None:
    function = Module(parse(source)).functions.get(kernel)
    for node in ast.walk(function) if function else ():
        target = node.targets[0] if isinstance(node, ast.Assign) and node.lineno <= line <= node.end_lineno else None
        if isinstance(target, ast.Name) and target.id in names:
            return target.id, node.value
    return None


def _with_zero(source: str, value: ast.expr) -> str:
    """The source with this expression replaced by 0. Offsets in the tree count bytes."""
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    before = b"".join(lines[: value.lineno - 1]) + lines[value.lineno - 1][: value.col_offset]
    after = lines[value.end_lineno - 1][value.end_col_offset :] + b"".join(lines[value.end_lineno :])
    return (before + b"0" + after).decode()


def splice(template: str, kernel: str, blanks: dict[str, str]) -> str:
    """`template` with its own expressions replaced by those of `blanks` (from blank_expressions).

    Raises Restructured if an expression uses a name that `template`'s kernel has not defined before that line.
    """
    clean = kernels_of(template)
    tree = _plain_assignments(ast.parse(clean.source))
    function = _named(tree, kernel)
    known = (
        set(clean.kernels[kernel].params) | set(clean.constants) | BUILTINS | {"tl", "triton", "libdevice"}
    )
    for name, text in blanks.items():
        places = _places(function, name)
        place = places[_position(places, name, clean)]
        expression = ast.parse(text, mode="eval").body
        unknown = _names(expression, ast.Load) - known - _names(function, ast.Store, before=place.lineno)
        if unknown:
            raise Restructured(f"`{name}` uses `{min(unknown)}`, which the starter's kernel does not define before it")
        place.value = expression
    page = Page()
    for statement in tree.body:
        page.statement(statement, 0)
    return page.text()


class _Literals(ast.NodeTransformer):
    """Replaces module constants by their numbers, so that an expression can move to another module."""

    def __init__(self, constants: dict[str, object]):
        self.constants = constants

    def visit_Name(self, node):
        return literal(self.constants[node.id]) if node.id in self.constants else node


def _function(kernels: KernelSource, name: str) -> ast.FunctionDef:
    return _named(_plain_assignments(ast.parse(kernels.source)), name)


def _named(tree: ast.Module, name: str) -> ast.FunctionDef:
    return next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)


def _names(tree: ast.AST, context: type[ast.expr_context], before: float = math.inf) -> set[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, context))
    return {node.id for node in nodes if node.lineno < before}


def _plain_assignments(tree: ast.Module) -> ast.Module:
    """Rewrites `x += y` as `x = x + y`, so that every assignment has its whole right-hand side."""

    class Expand(ast.NodeTransformer):
        def visit_AugAssign(self, node):
            value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
            return ast.fix_missing_locations(ast.copy_location(ast.Assign([node.target], value), node))

    return Expand().visit(tree)


def _places(function: ast.FunctionDef, name: str) -> list:
    """Statements whose `.value` can fill the blank, in order: assignments to `name`, or calls of tl.store."""
    nodes = sorted(
        (n for n in ast.walk(function) if isinstance(n, ast.stmt)), key=lambda n: (n.lineno, n.col_offset)
    )
    if name == "store":
        return [n for n in nodes if isinstance(n, ast.Expr) and shorten(n.value.func) == "tl.store"]
    targets = {ast.Assign: lambda node: node.targets[0], ast.AnnAssign: lambda node: node.target}
    nodes = [(node, targets[type(node)](node)) for node in nodes if type(node) in targets]
    return [node for node, target in nodes if isinstance(target, ast.Name) and target.id == name]


def _position(places: list, name: str, template: KernelSource) -> int:
    """Index of the first place that is more than the initial value of an accumulator."""
    fold = Module(ast.parse(template.source)).fold
    for index, place in enumerate(places):
        if name == "store" or fold(place.value) is None:
            return index
    raise Restructured(f"the starter has no blank `{name}`")
