"""Small changes of an answer by itself. Where no right answer resembles it, one of them may be the repair.

Source: Debroy and Wong, "Using mutation to automatically suggest fixes for faulty programs", 2010.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain, islice

from . import nodes
from .aligned import Difference

MOST_SLIPS = 30  # each costs about 25 ms; of those that helped, the last one was number 26
LARGEST_FACTOR = 16
MINUS_INFINITY = ast.parse("-float('inf')", mode="eval").body
_OPERATORS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Add: ast.Sub, ast.Sub: ast.Add,
              ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}  # fmt: skip
_FUNCTIONS = {"max": "sum", "sum": "max", "maximum": "minimum", "minimum": "maximum", "exp": "exp2", "exp2": "exp",
              "log": "log2", "log2": "log"}  # fmt: skip
_AXES = {":, None": ast.parse("x[None, :]", mode="eval").body.slice,
         "None, :": ast.parse("x[:, None]", mode="eval").body.slice}  # fmt: skip
Change = tuple[ast.AST, ast.AST]  # what stands there, and what to write


def slips(source: str, most: int = MOST_SLIPS) -> list[tuple[Difference, ...]]:
    """In the kernels, then in other functions: the most common kinds of slips first."""
    functions = [_Function(n) for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
    functions.sort(key=lambda each: not each.is_kernel)
    alone = chain.from_iterable(kind(function) for kind in _KINDS for function in functions)
    made = chain(map(_exchanged, functions), ([change] for change in alone))
    places = nodes.Places(source)

    def difference(old: ast.AST, new: ast.AST) -> Difference:
        text = places.closed(old, new, ast.unparse(new))
        return Difference(old.lineno, ((*places.span(old), text),), nodes.size(new))

    return [tuple(difference(*change) for change in changes) for changes in islice(filter(None, made), most)]


class _Function:
    """A function and its variables: the kind of each one's first value, and the line from which it has one.

    Kinds: "pointer", "mask", "value" of a tensor, "index" of lanes, "constant", and "number": a length, a stride, a
    number of a program. expressions: in the order of the text.
    """

    def __init__(self, function: ast.FunctionDef):
        self.is_kernel = any("jit" in ast.unparse(each) for each in function.decorator_list)
        self.parts = [n for each in function.body for n in ast.walk(each)]
        expressions = (n for n in self.parts if isinstance(n, ast.expr))
        self.expressions = sorted(expressions, key=lambda n: (n.lineno, n.col_offset))
        self.used = set().union(*map(nodes.loaded, function.body))
        self.of = {each.arg: ("constant" if each.annotation else "number", 0) for each in nodes.parameters(function)}
        for node in self.expressions:
            if _method(node) in ("load", "store") and node.args and (name := _leftmost(node.args[0])) in self.of:
                self.of[name] = ("pointer", 0)
        for line in self.parts:
            if isinstance(line, (ast.Assign, ast.AugAssign, ast.For)):
                target = line.targets[0] if isinstance(line, ast.Assign) else line.target
                if isinstance(target, ast.Name) and target.id not in self.of:
                    self.of[target.id] = (self.kind(getattr(line, "value", None)), line.lineno)

    def kind(self, value: ast.expr | None) -> str:
        parts = [*ast.walk(value)] if value else []
        called = {_method(n) for n in parts}
        of = {self.of[n.id][0] for n in parts if isinstance(n, ast.Name) and n.id in self.of}
        if "pointer" in of and "load" not in called:
            return "pointer"
        floats = any(isinstance(n, ast.Constant) and isinstance(n.value, (float, str)) for n in parts)
        if floats or "value" in of or called & {"load", "zeros", "full", "dot"}:
            return "value"
        if any(isinstance(n, ast.Compare) for n in parts) or of == {"mask"}:
            return "mask"
        return "index" if "arange" in called or "index" in of else "number"

    def like(self, name: ast.Name, anything: bool) -> Iterator[str]:
        """Other variables that have a value there, and the same kind or no other use."""
        kind, _ = self.of.get(name.id, ("", 0))
        for other, (of, line) in self.of.items() if kind else ():
            if other != name.id and line < name.lineno and (of == kind or anything or other not in self.used):
                yield other


def _method(node: ast.expr) -> str:
    """What is called, without its module: load, of tl.load."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def _leftmost(node: ast.expr) -> str:
    while isinstance(node, ast.BinOp):
        node = node.left
    return getattr(node, "id", "")


def _exchanged(function: _Function) -> list[Change]:
    """// in the place of %, and % in the place of //."""
    other = {ast.FloorDiv: ast.Mod, ast.Mod: ast.FloorDiv}
    found = [n for n in function.expressions if isinstance(n, ast.BinOp) and type(n.op) in other]
    both = len(found) == 2 and len({type(n.op) for n in found}) == 2
    return [(n, ast.BinOp(n.left, other[type(n.op)](), n.right)) for n in found] if both else []


def _operators(function: _Function) -> Iterator[Change]:
    """A division that rounds down where it must round up; < for <=, + for -, * for /."""
    module = "tl" if function.is_kernel else "triton"
    for node in function.expressions:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            yield node, ast.Call(ast.Attribute(ast.Name(module), "cdiv"), [node.left, node.right], [])
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
            yield node, ast.Compare(node.left, [_OPERATORS[type(node.ops[0])]()], node.comparators)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS and function.kind(node) in ("value", "mask"):
            yield node, ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
    for loop in (n for n in function.parts if isinstance(n, ast.For)):
        for line in loop.body:
            name = getattr(line.targets[0], "id", "") if isinstance(line, ast.Assign) else ""
            if name and function.of[name][1] < loop.lineno and name not in nodes.loaded(line.value):
                yield line, ast.AugAssign(line.targets[0], ast.Add(), line.value)


def _numbers(function: _Function) -> Iterator[Change]:
    """What masked lanes and accumulators hold at first, axes, and a factor that stands elsewhere."""
    numbers = [n.value for n in function.parts if isinstance(n, ast.Constant) and type(n.value) is int]
    factors = sorted({each for each in numbers if 2 <= each <= LARGEST_FACTOR})
    for node in function.expressions:
        called = _method(node)
        for each in node.keywords if called else ():
            if each.arg == "other":
                yield each.value, ast.Constant(0.0) if "inf" in ast.unparse(each.value) else MINUS_INFINITY
            if each.arg == "axis" and isinstance(each.value, ast.Constant) and each.value.value in (0, 1):
                yield each.value, ast.Constant(1 - each.value.value)
        if called == "zeros" and node.args and function.is_kernel:
            full = ast.Attribute(ast.Name("tl"), "full")
            yield node, ast.Call(full, [node.args[0], MINUS_INFINITY, *node.args[1:]], node.keywords)
        if isinstance(node, ast.Subscript) and (axes := _AXES.get(ast.unparse(node.slice))):
            yield node, ast.Subscript(node.value, axes)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and function.kind(node) == "number":
            yield from ((node, ast.BinOp(node, ast.Mult(), ast.Constant(each))) for each in factors)


def _calls(function: _Function) -> Iterator[Change]:
    """Another function, one too many, a tile that is not turned; a term too many."""
    for node in function.expressions:
        called = _method(node)
        if called in _FUNCTIONS:
            yield node, ast.Call(ast.Attribute(node.func.value, _FUNCTIONS[called]), node.args, node.keywords)
        if called in ("exp", "log", "trans", "sqrt", "abs") and node.args:
            yield node, node.args[0]
        if called == "store":
            for each in (*node.args[1:], *(each.value for each in node.keywords if each.arg == "mask")):
                yield each, ast.Call(ast.Attribute(ast.Name("tl"), "trans"), [each], [])
        if isinstance(node, ast.BinOp) and function.kind(node) == "value":
            yield node, node.left
            yield node, node.right


def _names(function: _Function) -> Iterator[Change]:
    """Another variable of the same kind. A store may store any."""
    stored = {id(node.args[1]) for node in function.expressions if _method(node) == "store" and len(node.args) > 1}
    for node in function.expressions if function.is_kernel else ():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield from ((node, ast.Name(other)) for other in function.like(node, id(node) in stored))


_KINDS = (_operators, _numbers, _calls, _names)
