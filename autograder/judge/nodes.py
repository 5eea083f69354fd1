"""Parts of Python's syntax trees, as the comparison of two answers needs them."""

from __future__ import annotations

import ast
import copy
import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache

import triton.language as tl

BODIES = ("body", "orelse")
WITH_BODIES = (ast.FunctionDef, ast.ClassDef, ast.For, ast.While, ast.If, ast.With)
NAMED = (ast.FunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
LARGEST = 300  # parts of what a variable stands for
_VERSION = "·"  # between a variable and the number of its value
_CLOSED = (ast.Constant, ast.Name, ast.Call, ast.Attribute)  # need no parentheses


@lru_cache(4096)
def own(node: ast.AST) -> list[ast.AST]:
    """A statement's parts without the statements inside, in the order of the text."""
    found = [node]
    for name, value in ast.iter_fields(node):
        if not (name in BODIES and isinstance(node, ast.stmt)):
            for each in value if isinstance(value, list) else [value]:
                found += own(each) if isinstance(each, ast.AST) else ()
    return found


def same(a: object, b: object) -> bool:
    """Whether two nodes are the same code, wherever it stands. Comparing what `ast.dump` writes takes much longer."""
    if type(a) is not type(b):
        return False
    if isinstance(a, ast.AST):
        return all(same(getattr(a, name, None), getattr(b, name, None)) for name in a._fields)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def copied(node):
    """A copy with copies of all parts. copy.deepcopy takes five times as long."""
    if isinstance(node, list):
        return [copied(each) for each in node]
    if not isinstance(node, ast.AST) or not (node._fields or node._attributes):  # ast.parse makes one Load() for all
        return node
    new = type(node).__new__(type(node))
    new.__dict__ |= node.__dict__
    for name in node._fields:
        if isinstance(value := new.__dict__.get(name), (list, ast.AST)):
            new.__dict__[name] = copied(value)
    return new


def header(node: ast.AST) -> ast.AST:
    """A statement without the statements inside."""
    if isinstance(node, WITH_BODIES):
        node = copy.copy(node)
        for name in BODIES:
            setattr(node, name, [])
    return node


def words(node: ast.AST, known: Callable[[str], str]) -> Counter:
    """What a statement has: names, numbers, operations. Of a function, what is inside, too."""
    named, other = read(node)
    return Counter([*filter(None, map(known, named)), *other])


@lru_cache(4096)
def read(node: ast.AST) -> tuple[list[str], list[str]]:
    """The names in a statement, and what else it has."""
    parts = list(ast.walk(node)) if isinstance(node, NAMED) else own(node)
    other = [getattr(n, "attr", None) or (repr(n.value) if isinstance(n, ast.Constant) else type(n).__name__)
             for n in parts if not called(n) and not isinstance(n, (ast.expr_context, ast.arguments))]  # fmt: skip
    return [*filter(None, map(called, parts))], other


def assigned(node: ast.stmt) -> ast.stmt:
    """x += y as x = x + y."""
    if not isinstance(node, ast.AugAssign) or not isinstance(node.target, ast.Name):
        return node
    value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
    return ast.copy_location(ast.Assign([node.target], ast.copy_location(value, node.value)), node)


def kind(node: ast.stmt) -> type:
    return ast.Assign if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else type(node)


def called(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""


def body(node: ast.AST, name: str = "body") -> list[ast.stmt]:
    """The statements inside, but for docstrings."""
    return [n for n in getattr(node, name, []) if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]


def stored(node: ast.AST) -> list[str]:
    return [n.id for n in own(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def loaded(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def is_block(node: ast.AST) -> bool:
    number = getattr(node, "value", None)
    return type(number) is int and number >= 16 and number & (number - 1) == 0


def size(node: ast.AST) -> int:
    return sum(isinstance(each, ast.expr) for each in ast.walk(node))


def first_line(node: ast.AST) -> int:
    if not hasattr(node, "lineno"):
        return min((n.lineno for n in own(node) if hasattr(n, "lineno")), default=1)
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])


def defined(node: ast.AST) -> set[str]:
    """The names that a module, class or function gives a value, outside of the functions in it, or imports."""
    parts = [*inside(node)]
    found = {n.id for n in parts if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    found |= {n.arg for n in parts if isinstance(n, ast.arg)}
    found |= {n.name for n in parts if isinstance(n, NAMED)}
    imported = [each for n in parts if isinstance(n, IMPORTS) for each in n.names]
    return found | {each.asname or each.name.partition(".")[0] for each in imported}


def parameters(node: ast.AST) -> list[ast.arg]:
    return [n for n in ast.walk(node.args) if isinstance(n, ast.arg)] if isinstance(node, ast.FunctionDef) else []


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a module, class or function, but not in the functions inside."""
    for each in ast.iter_child_nodes(node):
        yield each
        yield from () if isinstance(each, NAMED) else inside(each)


def is_kernel(node: ast.AST) -> bool:
    """Whether a function has a decorator such as @triton.jit."""
    return isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(each) for each in node.decorator_list)


def launches(node: ast.AST) -> bool:
    """Whether an expression is kernel[grid](...)."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)


class Grids(ast.NodeTransformer):
    """`ast.unparse` takes the parentheses of a grid away: kernel[n,](…)."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if launches(node) and isinstance(node.func.slice, ast.Tuple):
            node.func.slice = ast.Name(ast.unparse(node.func.slice))
        return node


class Renamed(ast.NodeTransformer):
    """keywords: of the names, those of parameters."""

    def __init__(self, names: dict[str, str], keywords: dict[str, str]):
        self.names, self.keywords = names, keywords

    def visit_Name(self, node):
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node):
        node.arg = self.names.get(node.arg, node.arg)
        return self.generic_visit(node)

    def visit_keyword(self, node):
        node.arg = self.keywords.get(node.arg, node.arg)
        return self.generic_visit(node)


class Folded(ast.NodeTransformer):
    """names: of variables, by what they stand for."""

    def __init__(self, names: dict[str, str]):
        self.names = names
        self.kinds = {value.partition("(")[0] for value in names}  # what is of another kind need not be dumped

    def visit(self, node):
        name = self.names.get(ast.dump(node)) if type(node).__name__ in self.kinds else None
        return ast.Name(name, ast.Load()) if name else self.generic_visit(node)


def given(call: ast.Call) -> dict[str | int, ast.expr]:
    """The arguments of a call, by the names of the parameters; by their numbers where nobody knows these."""
    names = [*(parameters_of(call.func.attr) if isinstance(call.func, ast.Attribute) else ())]
    found = {names[i] if i < len(names) else i: value for i, value in enumerate(call.args)}
    return found | {each.arg: each.value for each in call.keywords if each.arg}


@lru_cache
def parameters_of(name: str) -> dict[str, bool]:
    """Of a function of triton.language, and whether each must be given."""
    function = getattr(tl, name, None)
    try:
        parameters = inspect.signature(getattr(function, "fn", function)).parameters.values()
    except (TypeError, ValueError):
        return {}
    several = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    return {} if several else {each.name: each.default is each.empty for each in parameters}


class Places:
    """Where the nodes of a source stand, in bytes."""

    def __init__(self, source: str):
        self.source = source.encode()
        self.starts = [0]  # of lines
        for line in self.source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """(0, 0) if the node has no text."""
        placed = [node] if hasattr(node, "lineno") else [n for n in ast.walk(node) if hasattr(n, "lineno")]
        begin = min((self.starts[n.lineno - 1] + n.col_offset for n in placed), default=0)
        return begin, max((self.starts[n.end_lineno - 1] + n.end_col_offset for n in placed), default=0)

    def lines(self, node: ast.stmt) -> tuple[int, int]:
        """The whole lines of a statement, with its decorators."""
        return self.starts[first_line(node) - 1], self.starts[min(node.end_lineno, len(self.starts) - 1)]

    def closed(self, old: ast.AST, new: ast.AST, text: str) -> str:
        """The text of a new node, in parentheses if they change how the source around the old one is read."""
        begin, end = self.span(old)
        before, behind = self.source[:begin].rstrip(b" ")[-1:], self.source[end:].lstrip(b" ")[:1]
        enclosed = before in (b"(", b"[", b",", b"=") and behind in (b")", b"]", b",", b"\n")
        if enclosed or isinstance(new, _CLOSED) or not isinstance(old, ast.expr):
            return text
        made = [self.source[:begin] + each.encode() + self.source[end:] for each in (text, f"({text})")]
        try:
            return text if same(*map(ast.parse, made)) else f"({text})"
        except UNREADABLE:
            return f"({text})"


# -- an answer in a normal form, in which variables stand for what they are ------------------------------------
# Answers in different styles share little text, but most of what they compute.


def normal(tree: ast.Module) -> ast.Module:
    """The same program, with what a variable stands for in its places, if it gets its values one after the other.

    `used` of such a part is the variable that stood there. `folds` of a function says which variable stands for what,
    and between which lines.
    """
    tree = _Usual().visit(copied(tree))
    for function in [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]:
        bodies = [getattr(n, name) for n in [function, *inside(function)] for name in BODIES
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
                if size(value) <= LARGEST:
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
        body[:] = [assigned(each) if _target(each) == name else each for each in body]
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
    stored = Counter(n.id for n in inside(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    stored.update(n.arg for n in parameters(function))
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
        value = copied(self.values[node.id])
        value.used = node
        return value


class _Usual(ast.NodeTransformer):
    """Calls of Triton's functions as most write them: what has a default by its name, all else by its place."""

    def visit_Call(self, node):
        self.generic_visit(node)
        named = given(node)
        known = parameters_of(node.func.attr) if isinstance(node.func, ast.Attribute) else {}
        if known and named.keys() <= known.keys():
            node.args = [named[name] for name, required in known.items() if required and name in named]
            optional = [name for name, required in known.items() if not required and name in named]
            node.keywords = [ast.keyword(name, named[name]) for name in optional]
        return node
