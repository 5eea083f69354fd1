"""Reading the top level of a learner's source: kernels, numeric constants, and what each name means."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass

from .records import NotAllowed
from .words import (
    MATH_CONSTANTS,
    MATH_FUNCTIONS,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_INTEGER,
    TL_FUNCTIONS,
    TL_TYPES,
)


def parse(source: str) -> ast.Module:
    if len(source) > MAX_CHARACTERS:
        raise NotAllowed(1, f"source of more than {MAX_CHARACTERS} characters", "shorten it")
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise NotAllowed(
            error.lineno or 1, f"source that Python cannot read ({error.msg})", "correct it"
        ) from None
    except (ValueError, RecursionError, MemoryError):
        raise NotAllowed(
            1, "source that Python cannot read", "write it with less nesting and plain text"
        ) from None


def measure(function: ast.AST) -> int:
    """Number of nodes below `function`. Refuses deep nesting. It is not recursive, so the stack cannot overflow."""
    stack, count = [(function, 0)], 0
    while stack:
        node, depth = stack.pop()
        count += 1
        if depth > MAX_DEPTH:
            raise NotAllowed(
                getattr(node, "lineno", function.lineno), "such deep nesting", "use more, shorter lines"
            )
        stack += [(child, depth + 1) for child in ast.iter_child_nodes(node)]
    return count


def _module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run with the module, those in nested blocks included, those in functions and classes not."""
    stack = body[::-1]
    while stack:
        statement = stack.pop()
        yield statement
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            stack += list(_blocks(statement))[::-1]


def _blocks(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements in the blocks of `node`, not those in blocks of blocks."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            yield from _blocks(child)


@dataclass(frozen=True)
class Number:
    value: object
    constexpr: bool = False


_ARITHMETIC = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_FOLDED_BUILTINS = {"int": int, "float": float, "bool": bool, "abs": abs, "min": min, "max": max}
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_}


class Module:
    """Top level of the learner's source: jit functions, numeric constants, and what each name means."""

    def __init__(self, tree: ast.Module):
        self.aliases = {"triton": "triton", "tl": "triton.language"}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.constants: dict[str, Number] = {}
        self.lines: dict[str, int] = {}
        self.bound: set[str] = set()
        self.used: set[str] = set()
        self.uses_libdevice = False
        changed = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
        top = set(map(id, tree.body))
        for statement in _module_level(tree.body):
            self._read(statement, id(statement) in top)
        for name in changed:
            self.constants.pop(name, None)
        self._refuse_nested_kernels(tree)

    def _read(self, statement: ast.stmt, at_top: bool) -> None:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            self._read_import(statement)
        elif isinstance(statement, ast.FunctionDef):
            self._bind(statement.name)
            if at_top and self._is_kernel(statement):
                self.functions[statement.name] = statement
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            self._read_assignment(statement, at_top)
        else:
            targets = [getattr(statement, "target", None), getattr(statement, "name", None)]
            for node in ast.walk(targets[0]) if isinstance(targets[0], ast.AST) else ():
                if isinstance(node, ast.Name):
                    self._bind(node.id)
            if isinstance(targets[1], str):
                self._bind(targets[1])

    def _bind(self, name: str) -> None:
        """Gives the name a new meaning: forget the old one."""
        for table in (self.aliases, self.functions, self.constants):
            table.pop(name, None)
        self.bound.add(name)

    def _read_import(self, statement: ast.Import | ast.ImportFrom) -> None:
        for item in statement.names:
            if isinstance(statement, ast.Import):
                path = item.name if item.asname else item.name.partition(".")[0]
                name = item.asname or path
            else:
                base = statement.module or ""
                path, name = f"{base}.{item.name}", item.asname or item.name
                if item.name == "*" and base == "triton.language":
                    for star in TL_FUNCTIONS | TL_TYPES:
                        self._bind(star)
                        self.aliases[star] = f"{base}.{star}"
                    continue
            self._bind(name)
            self.aliases[name] = path

    def _read_assignment(self, statement: ast.Assign | ast.AnnAssign, at_top: bool) -> None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        number = path = None
        if at_top and statement.value is not None and len(targets) == 1 and isinstance(targets[0], ast.Name):
            path = self.path(statement.value)
            number = None if path else self.fold(statement.value)
        for name in names:
            self._bind(name)
        if path and path.startswith("triton."):
            self.aliases[names[0]] = path
        elif number is not None:
            self.constants[names[0]] = number
            self.lines[names[0]] = statement.lineno

    def _is_kernel(self, function: ast.FunctionDef) -> bool:
        """Whether `function` is under `@triton.jit`. Refuses other decorators beside it."""
        names = [self.path(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list]
        if not any(name in ("triton.jit", "triton.runtime.jit.jit") for name in names):
            return False
        allowed = ("triton.jit", "triton.runtime.jit.jit", "triton.autotune", "triton.heuristics")
        for decorator, name in zip(function.decorator_list, names, strict=True):
            if name not in allowed:
                text = shorten(decorator)
                raise NotAllowed(decorator.lineno, f"the decorator `@{text}`", "keep `@triton.jit` alone")
        return True

    def _refuse_nested_kernels(self, tree: ast.Module) -> None:
        top = set(map(id, tree.body))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and id(node) not in top and self._is_kernel(node):
                place = "a kernel defined inside another block"
                raise NotAllowed(
                    node.lineno, f"`{node.name}`, {place},", "define it at the top level of the cell"
                )

    def path(self, node: ast.AST) -> str | None:
        """The dotted path of a name or attribute chain, such as "triton.language.load"."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.aliases:
            return None
        return ".".join([self.aliases[node.id], *reversed(parts)])

    def fold(self, node: ast.AST, depth: int = 0) -> Number | None:
        """Value of a constant arithmetic expression, or None for any other expression."""
        if depth > MAX_DEPTH:
            return None
        if isinstance(node, ast.Constant):
            small = (
                type(node.value) in (float, bool) or type(node.value) is int and abs(node.value) < MAX_INTEGER
            )
            return Number(node.value) if small or node.value is None else None
        if isinstance(node, ast.Name) and node.id in self.constants:
            return self.constants[node.id]
        path = self.path(node)
        if path:
            return (
                Number(MATH_CONSTANTS[path[5:]])
                if path[:5] == "math." and path[5:] in MATH_CONSTANTS
                else None
            )
        if isinstance(node, ast.UnaryOp):
            return self._apply(_UNARY[type(node.op)], [node.operand], depth)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return self._apply(_bounded(_ARITHMETIC[type(node.op)]), [node.left, node.right], depth)
        if isinstance(node, ast.Call) and not node.keywords:
            return self._fold_call(node, depth)
        return None

    def _fold_call(self, node: ast.Call, depth: int) -> Number | None:
        path = self.path(node.func)
        name = node.func.id if isinstance(node.func, ast.Name) and node.func.id not in self.bound else None
        if path in ("triton.language.constexpr", "triton.language.core.constexpr") and len(node.args) == 1:
            number = self.fold(node.args[0], depth + 1)
            return number and Number(number.value, constexpr=True)
        if name == "float" and len(node.args) == 1 and is_infinity(node.args[0]):
            return Number(float(node.args[0].value))
        if path and path[:5] == "math." and path[5:] in MATH_FUNCTIONS:
            return self._apply(_bounded(getattr(math, path[5:], None)), node.args, depth)
        if path == "triton.next_power_of_2":
            return self._apply(lambda n: 1 << (n - 1).bit_length() if n > 0 else 0, node.args, depth)
        if path == "triton.cdiv":
            return self._apply(lambda a, b: -(-a // b), node.args, depth)
        if name in _FOLDED_BUILTINS:
            return self._apply(_FOLDED_BUILTINS[name], node.args, depth)
        return None

    def _apply(self, function, nodes: list[ast.expr], depth: int) -> Number | None:
        operands = [self.fold(node, depth + 1) for node in nodes]
        if None in operands:
            return None
        try:
            value = function(*(operand.value for operand in operands))
        except (ArithmeticError, TypeError, ValueError):
            return None
        if type(value) not in (int, float, bool) or type(value) is int and abs(value) >= MAX_INTEGER:
            return None
        return Number(value, any(operand.constexpr for operand in operands))


def _bounded(function):
    """The operation with a check that refuses powers and shifts with extremely large results."""

    def apply(*operands):
        if function in (operator.pow, operator.lshift, math.pow) and abs(operands[-1]) > 64:
            raise OverflowError
        return function(*operands)

    return apply


def is_infinity(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in ("inf", "-inf", "+inf", "nan")


def literal(value: object) -> ast.expr:
    """An expression for a number. Infinities and NaN become calls of float, which Triton understands too."""
    if isinstance(value, float) and not math.isfinite(value):
        return ast.Call(ast.Name("float", ast.Load()), [ast.Constant(str(value))], [])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def shorten(node: ast.AST, limit: int = 60) -> str:
    try:
        text = " ".join(ast.unparse(node).split())
    except (RecursionError, ValueError):
        return type(node).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"
