"""Small changes of an answer by itself. Where no right answer resembles it, one of them may be the repair.

Source: Debroy and Wong, "Using mutation to automatically suggest fixes for faulty programs", 2010.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain, combinations, count, islice, pairwise, zip_longest

from ..verdict import Slug
from . import nodes
from .aligned import Difference

MOST_SLIPS = 30  # each costs about 25 ms
LARGEST_FACTOR = 16
NEAR = {"pointer": 2, "number": 1, "constant": 1}  # how far two arguments are apart that changed places
MINUS_INFINITY = ast.parse("-float('inf')", mode="eval").body
_OPERATORS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Add: ast.Sub, ast.Sub: ast.Add,
              ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}  # fmt: skip
_FUNCTIONS = {"max": "sum", "sum": "max", "maximum": "minimum", "minimum": "maximum", "exp": "exp2", "exp2": "exp",
              "log": "log2", "log2": "log"}  # fmt: skip
_AXES = {":, None": ast.parse("x[None, :]", mode="eval").body.slice,
         "None, :": ast.parse("x[:, None]", mode="eval").body.slice}  # fmt: skip
_SIMPLE = (ast.Assign, ast.AugAssign)
_LIMITS = ("maximum", "minimum", "clamp", "where")  # calls that give one of their arguments, as Python's max and min
LOW = 1000.0  # below its negative, a number stands for -inf
_SHORT = ("element_ty", "float16", "bfloat16")  # dtypes in a kernel that may have 16 bits
Change = tuple[ast.AST, ast.AST]  # what stands there, and what to write


def usual(source: str, slug: str) -> list[tuple[Difference, ...]]:
    """The slips that give this symptom more than others do."""
    return _made(source, (_patches, *_SYMPTOMS.get(slug, ())), MOST_SLIPS)


def slips(source: str, most: int = MOST_SLIPS) -> list[tuple[Difference, ...]]:
    """One of each kind in turn, in the kernels, then in other functions."""
    return _made(source, _KINDS, most)


def _made(source: str, kinds: Iterable[Kind], most: int | None = None) -> list[tuple[Difference, ...]]:
    functions = [_Function(n) for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
    functions.sort(key=lambda each: not each.is_kernel)
    kernels = {each.name: [kind for kind, line in each.of.values() if not line] for each in functions if each.is_kernel}
    for each in functions:
        each.kernels = kernels
    places = nodes.Places(source)

    def difference(old: ast.AST, new: ast.AST) -> Difference:
        text = places.closed(old, new, ast.unparse(new))
        return Difference(old.lineno, ((*places.span(old), text),), nodes.size(new))

    def differences(changes: list[Change]) -> tuple[Difference, ...]:
        made = tuple(difference(*change) for change in changes)
        if not isinstance(changes[0][1], ast.stmt) or changes[0][1] is not changes[-1][0]:
            return made
        first, then = made  # two neighbours that change places
        return (Difference(first.line, first.edits + then.edits, 2, "moved", below=then.line),)

    of_kinds = [_everywhere(chain.from_iterable(map(kind, functions))) for kind in kinds]
    in_turn = filter(None, chain.from_iterable(zip_longest(*of_kinds)))
    return [*map(differences, islice(in_turn, most))]


def _everywhere(made: Iterable[list[Change] | Change]) -> list[list[Change]]:
    """The same change of several places is made in each of them, and then in all, as lines that were copied need it."""
    found: list[list[Change]] = []
    alike: dict[object, list[Change]] = {}
    for change in filter(None, made):
        found.append(change if isinstance(change, list) else [change])
        if isinstance(change, tuple) and not isinstance(change[0], ast.Name):
            alike.setdefault((ast.dump(change[0]), ast.dump(change[1])), []).append(change)
    for changes in alike.values():
        if len(changes) > 1:
            found.insert(found.index(changes[-1:]) + 1, changes)
    return found


class _Function:
    """A function and its variables: the kind of each one's first value, and the line from which it has one.

    Kinds: "pointer", "mask", "value" of a tensor, "index" of lanes, "constant", and "number": a length, a stride, a
    number of a program. expressions: in the order of the text. kernels: the kinds of their parameters, by name.
    """

    kernels: dict[str, list[str]]

    def __init__(self, function: ast.FunctionDef):
        self.name = function.name
        self.is_kernel, self.body = nodes.is_kernel(function), function.body
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

    @cached_property
    def addresses(self) -> set[ast.AST]:
        """What stands in the addresses of loads and stores."""
        calls = (n for n in self.expressions if _method(n) in ("load", "store") and n.args)
        return {part for n in calls for part in ast.walk(n.args[0])}

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


Kind = Callable[[_Function], Iterator[list[Change] | Change]]


def _method(node: ast.expr) -> str:
    """What is called, without its module: load, of tl.load."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def _leftmost(node: ast.expr) -> str:
    while isinstance(node, ast.BinOp):
        node = node.left
    return getattr(node, "id", "")


def _dtypes(function: _Function) -> Iterator[list[Change] | Change]:
    """float32 in the place of the dtype of a tensor: in a kernel, in all that is not stored, and then in loads, too.

    And products that are not rounded to TF32.
    """
    stored = {n for node in function.expressions if _method(node) == "store" for n in ast.walk(node)}
    if function.is_kernel:
        float32 = ast.parse("tl.float32", mode="eval").body
        short = [(n, float32) for n in function.expressions if getattr(n, "attr", "") in _SHORT and n not in stored]
        loads = [n for n in function.expressions if _method(n) == "load" and n not in function.addresses]
        wide = {n for n, _ in short}
        casts = [n for n in function.expressions if _method(n) == "to" and not wide.isdisjoint(n.args)]
        whole = {n.value for n in function.parts if isinstance(n, ast.Assign)}  # x = x would be left
        if len(casts) == len(short) and whole.isdisjoint(casts):
            yield [(n, n.func.value) for n in casts]
        yield short
        yield short + [(n, ast.Call(ast.Attribute(n, "to"), [float32], [])) for n in loads]
        ieee = ast.keyword("input_precision", ast.Constant("ieee"))
        dots = [n for n in function.expressions if _method(n) == "dot" and "input_precision" not in nodes.given(n)]
        yield [(n, ast.Call(n.func, n.args, [*n.keywords, ieee])) for n in dots]
        return
    for node in function.expressions:
        for each in node.keywords if _method(node) else ():
            if each.arg == "dtype" and ast.unparse(each.value) != "torch.float32":
                yield each.value, ast.parse("torch.float32", mode="eval").body


def _rounded(function: _Function) -> Iterator[Change]:
    """A division that rounds down where it must round up."""
    for node in function.expressions:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            cdiv = ast.Attribute(ast.Name("tl" if function.is_kernel else "triton"), "cdiv")
            yield node, ast.Call(cdiv, [node.left, node.right], [])


def _exchanged(function: _Function) -> Iterator[list[Change]]:
    """// and %, the two axes of a grid, two arguments of a launch, or two variables of a kernel."""
    other = {ast.FloorDiv: ast.Mod, ast.Mod: ast.FloorDiv}
    found = [n for n in function.expressions if isinstance(n, ast.BinOp) and type(n.op) in other]
    if len(found) == 2 and len({type(n.op) for n in found}) == 2:
        yield [(n, ast.BinOp(n.left, other[type(n.op)](), n.right)) for n in found]
    axes = [nodes.given(n).get("axis") for n in function.expressions if _method(n) == "program_id"]
    if all(axes) and {ast.unparse(each) for each in axes} == {"0", "1"}:
        yield [(each, ast.Constant(1 - each.value)) for each in axes]
    for call in filter(nodes.launches, function.expressions):
        kinds = function.kernels.get(getattr(call.func.value, "id", ""), ())
        for (i, kind, a), (j, of, b) in combinations([*zip(count(), kinds, call.args)], 2):
            if kind == of and j - i <= NEAR[kind] and not nodes.same(a, b):
                yield [(a, b), (b, a)]
    places = {n.id for n in function.addresses if isinstance(n, ast.Name)}
    own = {name: line for name, (kind, line) in function.of.items() if line and name in places and kind != "pointer"}
    for a, b in combinations(own, 2):
        uses = [n for n in function.expressions if getattr(n, "id", "") in (a, b) and n.lineno > max(own[a], own[b])]
        if {n.id for n in uses} == {a, b}:
            yield [(n, ast.Name(b if n.id == a else a)) for n in uses]


def _operators(function: _Function) -> Iterator[Change]:
    """< for <=, + for -, * for /, and (a + b) / n for a / n + b."""
    for node in function.expressions:
        match node:
            case ast.BinOp(ast.BinOp(a, ast.Add() as plus, b), ast.Div() as by, n) if function.is_kernel:
                yield node, ast.BinOp(ast.BinOp(a, by, n), plus, b)
        if isinstance(node, ast.Compare) and function.is_kernel and type(node.ops[0]) in _OPERATORS:
            yield node, ast.Compare(node.left, [_OPERATORS[type(node.ops[0])]()], node.comparators)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS and function.kind(node) in ("value", "mask"):
            yield node, ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)


def _forgotten(function: _Function) -> Iterator[Change]:
    """= in the place of +=, in a loop."""
    for loop in (n for n in function.parts if isinstance(n, ast.For)):
        for line in loop.body:
            name = getattr(line.targets[0], "id", "") if isinstance(line, ast.Assign) else ""
            if name and function.of[name][1] < loop.lineno and name not in nodes.loaded(line.value):
                yield line, ast.AugAssign(line.targets[0], ast.Add(), line.value)


def _order(function: _Function) -> Iterator[list[Change]]:
    """Two neighbours, of which one sets what the other reads."""
    bodies = (getattr(n, "body", ()) for n in function.parts if isinstance(n, (ast.For, ast.While, ast.If)))
    for body in (function.body, *bodies):
        for first, then in pairwise(body):
            if isinstance(first, _SIMPLE) and isinstance(then, _SIMPLE) and (
                _sets(first) & nodes.loaded(then) or _sets(then) & nodes.loaded(first)
            ):
                yield [(first, then), (then, first)]


def _sets(line: ast.Assign | ast.AugAssign) -> set[str]:
    return {n.id for n in ast.walk(line) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


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
        if called == "zeros" and node.args:
            lengths = not function.is_kernel and not isinstance(node.args[0], (ast.Tuple, ast.List, ast.Attribute))
            shape, rest = (ast.Tuple(node.args), []) if lengths else (node.args[0], node.args[1:])
            full = ast.Attribute(node.func.value, "full")
            yield node, ast.Call(full, [shape, MINUS_INFINITY, *rest], node.keywords)
        if called in ("stride", "size") and ast.unparse(node.args or node) in ("0", "1"):
            yield node.args[0], ast.Constant(1 - node.args[0].value)
        if isinstance(node, ast.Subscript) and (axes := _AXES.get(ast.unparse(node.slice))):
            yield node, ast.Subscript(node.value, axes)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and function.kind(node) == "number":
            yield from ((node, ast.BinOp(node, ast.Mult(), ast.Constant(each))) for each in factors)


def _calls(function: _Function) -> Iterator[Change]:
    """Another function, one too many, a tile that is not turned; a term too many."""
    has_tiles = any(isinstance(n, ast.Subscript) and ast.unparse(n.slice) in _AXES for n in function.expressions)
    for node in function.expressions:
        called = _method(node)
        if called in _FUNCTIONS:
            yield node, ast.Call(ast.Attribute(node.func.value, _FUNCTIONS[called]), node.args, node.keywords)
        if called in ("exp", "log", "trans", "sqrt", "abs") and node.args:
            yield node, node.args[0]
        if called == "store" and has_tiles:
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


def _patches(function: _Function) -> Iterator[Change]:
    """What often hides another mistake: a number that is limited or chosen, and a very low one for -inf."""
    set_by = {n.value: ast.unparse(n.targets[0]) for n in function.parts if isinstance(n, ast.Assign)}
    spare: set[ast.AST] = set()  # without them, x = x would be left: this line as a whole is too much
    for node in filter(_limits, function.expressions):
        chosen = [*_chosen(node)]
        if set_by.get(node) in map(ast.unparse, chosen):
            spare |= {*ast.walk(node)}
        yield from ((node, part) for part in chosen if node not in spare and not isinstance(part, ast.Constant))
    for node in function.expressions if function.is_kernel else ():
        match node:
            case ast.UnaryOp(ast.USub(), ast.Constant(float() | int() as number)) if number >= LOW:
                yield node, MINUS_INFINITY


def _limits(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and (_method(node) in _LIMITS or getattr(node.func, "id", "") in ("max", "min"))


def _chosen(node: ast.expr) -> Iterator[ast.expr]:
    """What a call may give that limits or chooses, from the inside out."""
    called, value = _method(node), getattr(node.func, "value", None)
    for part in (*node.args[called == "where" :], *[value] * (called == "clamp")):
        if _limits(part):
            yield from _chosen(part)
        yield part


_KINDS = (_exchanged, _rounded, _forgotten, _operators, _numbers, _calls, _names, _dtypes, _order)
_SYMPTOMS = {
    Slug.WRONG_DTYPE: (_dtypes,), Slug.LOW_PRECISION: (_dtypes,), Slug.TAIL_WRONG: (_rounded,),
    Slug.UNWRITTEN_OUTPUT: (_rounded,), Slug.MISSING_RESCALE: (_order,),
}  # fmt: skip
