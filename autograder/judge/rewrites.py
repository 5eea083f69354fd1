"""A learner's source with one small change, as another source: for what no program shows.

An answer of plain values has no program, and what Triton's front end refuses has none, either. The changes are those of
`workshop.executor.changes`, made in the Python code. Only the box runs what comes out.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import combinations, permutations

MOST = 120  # characters of code in a message
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Div, ast.Mod)
_CLOSED = (ast.Constant, ast.Name, ast.Call, ast.Attribute, ast.Subscript)  # need no parentheses
_ORDERED = (ast.Sub, ast.FloorDiv, ast.Div, ast.Mod)
_EXTREMES = {"min": "max", "max": "min"}
_MIXED_UP = {frozenset(pair) for pair in ((ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv), (ast.FloorDiv, ast.Mod),
                                          (ast.FloorDiv, ast.Div), (ast.Add, ast.Mult))}  # fmt: skip


@dataclass(frozen=True)
class Rewrite:
    """Parts of a source, and what stands in the place of each. distance: from what is written."""

    distance: int
    parts: tuple[tuple[ast.expr, ast.expr], ...]

    @property
    def line(self) -> int:
        return self.parts[0][0].lineno

    def source(self, lines: list[bytes], closed: bool = True) -> str:
        """The source, of which these are the lines, with the change, in parentheses if it is an operation."""
        lines = list(lines)
        for old, new in sorted(self.parts, key=lambda part: (-part[0].lineno, -part[0].col_offset)):
            first, last = old.lineno - 1, old.end_lineno - 1
            before, after = lines[first][: old.col_offset], lines[last][old.end_col_offset :]
            text = f"({ast.unparse(new)})" if closed and not isinstance(new, _CLOSED) else ast.unparse(new)
            lines[first : last + 1] = [before + text.encode() + after] + [b""] * (last - first)
        return b"".join(lines).decode()

    def told(self, source: str) -> tuple[str, str]:
        """What is wrong, and what to write, in this source."""
        before = source.encode().splitlines(keepends=True)
        after, bare = self.source(before), self.source(before, closed=False)
        after = (bare if _alike(bare, after) else after).splitlines()
        lines = list(dict.fromkeys(old.lineno for old, _ in self.parts))
        new = " and ".join(f"`{after[line - 1].strip()}`" for line in lines)
        advice = f"write {new}."
        if len(new) > MOST and len(self.parts) == 1:
            advice = "write `{1}` in the place of `{0}`.".format(*self._around(before, after))
        elif len(new) > MOST:
            advice = f"write {' and '.join(f'`{ast.unparse(part)}`' for _, part in self.parts)}."
        where = "this line" if len(lines) == 1 else f"the lines {' and '.join(map(str, lines))}"
        return f"The mistake is in {where}: with one change there, all cases are right.", advice

    def _around(self, before: list[bytes], after: list[str]) -> tuple[str, str]:
        """The largest short expression around the part that changes, before and after."""
        old, line = self.parts[0][0], before[self.line - 1]
        spans = [(n.col_offset, n.end_col_offset) for n in ast.walk(ast.parse(b"".join(before)))
                 if isinstance(n, ast.expr) and n.lineno == n.end_lineno == self.line]  # fmt: skip
        around = [(a, b) for a, b in spans if a <= old.col_offset and old.end_col_offset <= b and b - a <= MOST // 2]
        a, b = max(around, key=lambda span: span[1] - span[0], default=(old.col_offset, old.end_col_offset))
        new = after[self.line - 1].encode()
        rest = len(line.rstrip(b"\r\n")) - b
        return line[a:b].decode(), new[a : len(new) - rest].decode()


@dataclass(frozen=True)
class Added:
    """A line behind a statement of a source."""

    distance: int
    behind: ast.stmt
    text: str

    @property
    def line(self) -> int:
        return self.behind.end_lineno

    def source(self, lines: list[bytes]) -> str:
        """The source, of which these are the lines, with the new one."""
        before = b"".join(lines[: self.line]).decode()
        new = " " * self.behind.col_offset + self.text + "\n"
        return before + "\n" * (not before.endswith("\n")) + new + b"".join(lines[self.line :]).decode()

    def told(self, source: str) -> tuple[str, str]:
        """What is wrong, and what to write, in this source."""
        return "Below this line, one is missing: with it, all cases are right.", f"add `{self.text}` below this line."


def _alike(source: str, other: str) -> bool:
    """Whether two sources mean the same."""
    with contextlib.suppress(SyntaxError):
        return ast.dump(ast.parse(source)) == ast.dump(ast.parse(other))
    return False


def one(distance: int, old: ast.expr, new: ast.expr) -> Rewrite:
    return Rewrite(distance, ((old, new),))


def nearest(source: str, kinds: Iterable[Callable], most: int, line: int | None = None) -> dict[str, Rewrite | Added]:
    """The rewrites of some kinds that are nearest to what is written, at most so many, by the sources that they give.

    line: those of statements only there, and where what it uses gets its value. None for what Python cannot read.
    """
    try:
        functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    made = [each for function in functions for kind in kinds
            for each in kind(_about(function, line) if line and kind in OF_STATEMENTS else function)]  # fmt: skip
    lines = source.encode().splitlines(keepends=True)
    near = nsmallest(most, made, key=lambda each: (each.distance, abs(each.line - line) if line else 0))
    return {each.source(lines): each for each in near}


def _about(function: ast.FunctionDef, line: int) -> ast.FunctionDef:
    """The statements of a function that stand in a line, or give a value to what that line uses."""
    simple = [n for n in ast.walk(function) if isinstance(n, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return))]
    there = [each for each in simple if each.lineno <= line <= each.end_lineno]
    used = {n.id for each in there for n in ast.walk(each) if isinstance(n, ast.Name)}
    stored = [
        {n.id for n in ast.walk(each) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} for each in simple
    ]
    return ast.FunctionDef(
        function.name, function.args, [e for e, s in zip(simple, stored) if e in there or used & s], []
    )


def _expressions(function: ast.FunctionDef) -> Iterator[ast.expr]:
    return (n for each in function.body for n in ast.walk(each) if isinstance(n, ast.expr))


# -- functions of plain values -------------------------------------------------------------------------------


def numbers(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """Another number."""
    for node in _expressions(function):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            old = node.value
            near = [old + 1, old - 1, 2 * old, old // 2 if type(old) is int else old / 2, 4 * old]
            yield from (one(1, node, ast.Constant(new)) for new in dict.fromkeys(near) if new != old and new >= 0)


def operators(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """Another operator, the operands in the other order, or one operand alone."""
    for node in _expressions(function):
        if isinstance(node, ast.BinOp):
            left, right, old = node.left, node.right, type(node.op)
            for new in _OPERATORS:
                if new is not old:
                    yield one(1 if frozenset((old, new)) in _MIXED_UP else 2, node, ast.BinOp(left, new(), right))
            if old in _ORDERED:
                yield one(0, node, ast.BinOp(right, node.op, left))
            yield from (one(0, node, each) for each in (left, right))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in _EXTREMES and not node.keywords:
            yield one(0, node, ast.Call(ast.Name(_EXTREMES[node.func.id]), node.args, []))
            rest = [[*node.args[:i], *node.args[i + 1 :]] for i in range(len(node.args)) if len(node.args) > 1]
            yield from (one(1, node, ast.Call(node.func, args, []) if len(args) > 1 else args[0]) for args in rest)


def names(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """Another variable or field."""
    known = _known(function)
    for node in _expressions(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in known:
            yield from (one(1, node, ast.Name(name)) for name in known if name != node.id)
        if isinstance(node, ast.Attribute):
            fields = {n.attr for n in _expressions(function) if isinstance(n, ast.Attribute)} - {node.attr}
            yield from (one(1, node, ast.Attribute(node.value, field)) for field in sorted(fields))


def insertions(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """One more operation, with a variable or a number of the function."""
    found = {n.value for n in _expressions(function) if isinstance(n, ast.Constant) and type(n.value) is int}
    others = [ast.Name(name) for name in _known(function)] + [ast.Constant(n) for n in sorted(found | {2, 4, 8})]
    for node in _expressions(function):
        if isinstance(node, (ast.BinOp, ast.Call)) or isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            for other in others:
                yield from (one(2, node, ast.BinOp(node, operator(), other)) for operator in _OPERATORS[:4])
                yield one(2, node, ast.Call(ast.Name("min"), [other, node], []))


def exchanges(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """Two values of a tuple, or the operators of two expressions, change places."""
    for node in _expressions(function):
        if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) == 2:
            yield one(0, node, ast.Tuple(node.elts[::-1]))
    operations = [node for node in _expressions(function) if isinstance(node, ast.BinOp)]
    for a, b in combinations(operations, 2):
        inside = a in ast.walk(b) or b in ast.walk(a)
        if not inside and frozenset((type(a.op), type(b.op))) in _MIXED_UP:
            yield Rewrite(1, tuple((x, ast.BinOp(x.left, y.op, x.right)) for x, y in ((a, b), (b, a))))


def _known(function: ast.FunctionDef) -> list[str]:
    """Its parameters and variables."""
    stored = [n.id for n in _expressions(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return list(dict.fromkeys([*(each.arg for each in function.args.args), *stored]))


OF_VALUES = (numbers, operators, names, insertions, exchanges)


# -- kernels -------------------------------------------------------------------------------------------------


def axes(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """The other axis of a reduction; a row for a column and a column for a row, one or all of a statement."""
    for statement in function.body:
        turned = []
        for node in (n for n in ast.walk(statement) if isinstance(n, ast.expr)):
            if isinstance(node, ast.Call):
                given = [each.value for each in node.keywords if each.arg == "axis"]
                yield from (one(0, n, ast.Constant(1 - n.value)) for n in given if getattr(n, "value", None) in (0, 1))
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
                turned.append((node, ast.Subscript(node.value, ast.Tuple(node.slice.elts[::-1]))))
        yield from (Rewrite(1, (each,)) for each in turned)
        if len(turned) > 1:
            yield Rewrite(0, tuple(turned))


def blocks(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """A column and a row of two vectors."""
    for node in _expressions(function):
        if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Name) and isinstance(node.right, ast.Name):
            for order in (1, -1):
                column, row = (ast.Tuple([ast.Slice(), ast.Constant(None)][::each]) for each in (order, -order))
                made = ast.BinOp(ast.Subscript(node.left, column), node.op, ast.Subscript(node.right, row))
                yield one(1, node, made)


def places(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """Two variables of a statement change places, with or without what makes rows and columns of them."""
    for statement in (each for each in function.body if isinstance(each, (ast.Assign, ast.AugAssign))):
        found = [n for n in ast.walk(statement.value) if isinstance(n, ast.Name)]
        for a, b in combinations([n for n in found if n.id != "tl"], 2):
            if a.id != b.id:
                yield Rewrite(1, ((a, b), (b, a)))
        for a, b in combinations([n for n in ast.walk(statement.value) if isinstance(n, ast.Subscript)], 2):
            yield Rewrite(1, ((a, b), (b, a)))


def carried(function: ast.FunctionDef) -> Iterator[Added]:
    """A variable keeps a value of a step of a loop, which uses it and gives it no new value: m keeps m_new."""
    given = {n.id for each in function.body for n in _stored(each)} if function.body else set()
    for loop in (n for each in function.body for n in ast.walk(each) if isinstance(n, ast.For)):
        stored = list(dict.fromkeys(n.id for each in loop.body for n in _stored(each)))
        used = {n.id for each in loop.body for n in ast.walk(each) if isinstance(n, ast.Name)}
        for name in sorted(
            (used & given) - {*stored, *(n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name))}
        ):
            yield from (Added(0 if name in new else 2, loop.body[-1], f"{name} = {new}") for new in stored)


def shifted(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """The exponential of a block less its maximum."""
    for node in _expressions(function):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "exp" and len(node.args) == 1:
            most = ast.Call(ast.Attribute(ast.Name("tl"), "max"), node.args, [ast.keyword("axis", ast.Constant(0))])
            yield one(1, node.args[0], ast.BinOp(node.args[0], ast.Sub(), most))


def _stored(statement: ast.stmt) -> Iterator[ast.Name]:
    return (n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def reductions(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """What is reduced, without the reduction; the largest number, and not its place."""
    for node in _expressions(function):
        name = getattr(node.func, "attr", "") if isinstance(node, ast.Call) and node.args else ""
        if name in ("sum", "max", "min"):
            yield one(0, node, node.args[0])
        if name in ("argmax", "argmin"):
            value = ast.Attribute(node.func.value, name.removeprefix("arg"))
            yield one(0, node, ast.Call(value, node.args, node.keywords))


def summands(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """A part of an address that another address from the same pointer has, and this one lacks."""
    calls = [n for n in _expressions(function) if isinstance(n, ast.Call) and n.args]
    addresses = [n.args[0] for n in calls if getattr(n.func, "attr", "") in ("load", "store")]
    terms = {address: [*_terms(address)] for address in addresses}
    for one_address, other in permutations(addresses, 2):
        known = [ast.dump(each) for each in terms[one_address]]
        if known[0] == ast.dump(terms[other][0]):
            missing = (each for each in terms[other] if ast.dump(each) not in known)
            yield from (one(0, one_address, ast.BinOp(one_address, ast.Add(), each)) for each in missing)


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    """The parts of a sum."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node


def rounded_up(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """A number of blocks that counts the last one, too."""
    module = "tl" if any("jit" in ast.unparse(each) for each in function.decorator_list) else "triton"
    for node in _expressions(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            count = ast.Call(ast.Attribute(ast.Name(module), "cdiv"), [node.left, node.right], [])
            yield one(0, node, count)


def joined(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """A division by the sum of a block, and not by the block."""
    for node in _expressions(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Name):
            along = ast.keyword("axis", ast.Constant(0))
            yield one(1, node.right, ast.Call(ast.Attribute(ast.Name("tl"), "sum"), [node.right], [along]))


def lengths(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """A length for the size of a block, or the size for the length."""
    given = {each.arg: each.annotation is not None for each in function.args.args if not each.arg.endswith("_ptr")}
    for node in _expressions(function):
        sides = [node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv)) else []
        sides = node.comparators if isinstance(node, ast.Compare) else sides
        for side in (each for each in sides if isinstance(each, ast.Name) and each.id in given):
            others = [name for name, constant in given.items() if constant is not given[side.id]]
            yield from (one(1, side, ast.Name(name)) for name in others)


def turned(function: ast.FunctionDef) -> Iterator[Rewrite]:
    """The mask of a store, turned as its tile is."""
    calls = (n for n in _expressions(function) if isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "store")
    for mask in (each.value for call in calls for each in call.keywords if each.arg == "mask"):
        yield one(1, mask, ast.Call(ast.Attribute(ast.Name("tl"), "trans"), [mask], []))


OF_STATEMENTS = (axes, blocks, places)
OF_KERNELS = (axes, places, reductions, rounded_up, summands, carried, shifted, joined, lengths, turned)
