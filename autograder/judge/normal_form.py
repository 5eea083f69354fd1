"""An answer in a normal form, in which variables stand for what they are.

Answers in different styles share little text, but most of what they compute.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterator

from . import nodes

LARGEST = 300  # parts of what a variable stands for
_VERSION = "·"  # between a variable and the number of its value


def normal(tree: ast.Module) -> ast.Module:
    """The same program, with what a variable stands for in its places, if it gets its values one after the other.

    `used` of such a part is the variable that stood there. `folds` of a function says which variable stands for what,
    and between which lines.
    """
    tree = _Usual().visit(nodes.copied(tree))
    for function in [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]:
        bodies = [getattr(n, name) for n in [function, *nodes.inside(function)] for name in nodes.BODIES
                  if isinstance(getattr(n, name, None), list)]  # fmt: skip
        before = _stores(function)
        ends = {name: line for body in bodies for name, line in _numbered(function, body, before)}
        stored = _stores(function)
        values: dict[str, ast.expr] = {}
        function.folds = {}
        for body in bodies:
            for line in list(body):
                name = getattr(line.targets[0], "id", "") if isinstance(line, ast.Assign) else ""
                if stored[name] != 1 or _makes_a_tensor(line.value):
                    continue
                value = _Inlined(values).visit(line.value)
                if nodes.size(value) <= LARGEST:
                    values[name] = value
                    end = ends.get(name, math.inf)
                    function.folds.setdefault(ast.dump(value), (name.partition(_VERSION)[0], line.lineno, end))
                    body.remove(line)
        function.body = [_Inlined(values).visit(line) for line in function.body]
    for each in ast.walk(tree):
        for name in (each, getattr(each, "used", None)):
            if isinstance(name, ast.Name):
                name.id = name.id.partition(_VERSION)[0]
    return tree


def _numbered(function: ast.FunctionDef, body: list[ast.stmt], stored: Counter) -> Iterator[tuple[str, int]]:
    """Gives each value of a variable a name of its own, if all are given in one body, one after the other. Yields the
    name, and the line of the next value."""
    for name, count in Counter(filter(None, map(_target, body))).items():
        places = [i for i, each in enumerate(body) if _target(each) == name]
        if count < 2 or stored[name] != count or not _only_below(function, body, places[0], name):
            continue
        body[:] = [nodes.assigned(each) if _target(each) == name else each for each in body]
        for number, (place, after) in enumerate(zip(places, [*places[1:], len(body)])):
            new = f"{name}{_VERSION}{number}"
            body[place].targets[0].id = new
            for n in (n for each in body[place + 1 : after + 1] for n in ast.walk(each)):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id == name:
                    n.id = new
            if after < len(body):
                yield new, body[after].lineno


def _target(line: ast.stmt) -> str:
    """The one variable that a statement gives a value."""
    targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
    return getattr(targets[0], "id", "") if isinstance(line, (ast.Assign, ast.AugAssign)) else ""


def _only_below(function: ast.FunctionDef, body: list[ast.stmt], place: int, name: str) -> bool:
    """Whether a variable is used only in this body, below its first value."""
    if isinstance(body[place], ast.AugAssign):
        return False
    below = {n for each in body[place + 1 :] for n in ast.walk(each)}
    uses = (n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name)
    return all(n in below or n is body[place].targets[0] for n in uses)


def _stores(function: ast.FunctionDef) -> Counter:
    stored = Counter(n.id for n in nodes.inside(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    stored.update(n.arg for n in nodes.parameters(function))
    return stored


def _makes_a_tensor(value: ast.expr) -> bool:
    """Whether a value is a tensor of the host's: there it counts which one it is."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    module = getattr(value.func.value, "id", "")
    numbers = module in ("tl", "triton") or value.func.attr in ("to", "numel", "stride", "size")
    return module == "torch" or not numbers


class _Inlined(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]):
        self.values = values

    def visit_Name(self, node):
        if node.id not in self.values or not isinstance(node.ctx, ast.Load):
            return node
        value = nodes.copied(self.values[node.id])
        value.used = node
        return value


class _Usual(ast.NodeTransformer):
    """Calls of Triton's functions as most write them: what has a default by its name, all else by its place."""

    def visit_Call(self, node):
        self.generic_visit(node)
        given = nodes.given(node)
        known = nodes.parameters_of(node.func.attr) if isinstance(node.func, ast.Attribute) else {}
        if known and given.keys() <= known.keys():
            node.args = [given[name] for name, required in known.items() if required and name in given]
            optional = [name for name, required in known.items() if not required and name in given]
            node.keywords = [ast.keyword(name, given[name]) for name in optional]
        return node
