"""Rewrites kernels before they are interpreted: conditions, boolean operators, `max` and `min`, and loops."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable

import triton.language as tl
import triton.runtime.interpreter as interpreter


class Logic:
    """What the compiler does with `and`, `or`, `not` and conditions; the transformed kernels call it."""

    @staticmethod
    def both(left: object, right: Callable[[], object]) -> object:
        if not _is_block(left):
            return left and right()
        return Logic._combine(left, right(), "__and__")

    @staticmethod
    def either(left: object, right: Callable[[], object]) -> object:
        if not _is_block(left):
            return left or right()
        return Logic._combine(left, right(), "__or__")

    @staticmethod
    def negation(value: object) -> object:
        return value == 0 if _is_block(value) else not value

    @staticmethod
    def condition(value: object) -> object:
        if _is_block(value):
            raise ValueError(
                "a block cannot be a condition: use tl.where(condition, a, b) to choose lane by lane"
            )
        return value

    @staticmethod
    def extreme(function: Callable, *values: object) -> object:
        """A call of something named `max` or `min`."""
        lanewise = {max: tl.maximum, min: tl.minimum}.get(function)
        if lanewise and any(isinstance(value, tl.tensor) for value in values):
            return functools.reduce(lanewise, values)
        return function(*values)

    @staticmethod
    def carried(name: str, before: object, after: object) -> None:
        """What a loop hands on to its next turn keeps its shape. The message is the compiler's."""
        if _shape(before) != _shape(after):
            raise TypeError(
                f"Loop-carried variable {name} has initial type {_type(before)} but is re-assigned to "
                f"{_type(after)} in loop! Please make sure that the type stays consistent."
            )

    @staticmethod
    def _combine(left: tl.tensor, right: object, operation: str) -> object:
        if not isinstance(right, tl.tensor):
            return left if bool(right) == (operation == "__and__") else right
        return getattr(left != 0, operation)(right != 0)


def _is_block(value: object) -> bool:
    return isinstance(value, tl.tensor) and value.handle.data.size > 1


def _shape(value: object) -> tuple | None:
    """() for a number; None for what is neither number nor block."""
    if isinstance(value, tl.tensor):
        return tuple(int(size) for size in value.shape)
    return () if isinstance(value, (int, float, tl.constexpr)) else None


def _type(value: object) -> str:
    numbers = {bool: "int1", int: "int32", float: "fp32"}
    return str(value.type) if isinstance(value, tl.tensor) else numbers.get(type(getattr(value, "value", value)), "")


class Transformer(interpreter.ASTTransformer):
    def visit_FunctionDef(self, node):
        _watch_loops(node.body, {argument.arg for argument in node.args.args})
        return self.generic_visit(node)

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("max", "min") and not node.keywords:
            return ast.copy_location(_logic("extreme", node.func, *node.args), node)
        return node

    def visit_Assign(self, node):
        node.value = self.visit(node.value)
        return super().visit_Assign(node)

    def visit_For(self, node):
        """A loop variable is a tensor, as in the compiler (`row.to(tl.int64)`), not Python's number."""
        self.generic_visit(node)
        if isinstance(node.target, ast.Name) and not _is_unrolled(node):
            own = ast.Assign([ast.Name(node.target.id, ast.Store())], ast.Name(node.target.id, ast.Load()))
            node.body.insert(0, self.visit_Assign(ast.fix_missing_locations(ast.copy_location(own, node))))
        return node

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        name = "both" if isinstance(node.op, ast.And) else "either"
        *values, result = node.values
        while values:
            right = ast.Lambda(ast.arguments([], [], None, [], [], None, []), result)
            result = _logic(name, values.pop(), right)
        return ast.copy_location(result, node)

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return (
            ast.copy_location(_logic("negation", node.operand), node)
            if isinstance(node.op, ast.Not)
            else node
        )

    def visit_If(self, node):
        self.generic_visit(node)
        node.test = ast.copy_location(_logic("condition", node.test), node.test)
        return node

    visit_While = visit_IfExp = visit_If


def _logic(function: str, *arguments: ast.expr) -> ast.Call:
    module = ast.Name("interpreter_logic", ast.Load())
    return ast.Call(ast.Attribute(module, function, ast.Load()), list(arguments), [])


def _is_unrolled(loop: ast.stmt) -> bool:
    function = loop.iter.func if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr == "static_range"


def _watch_loops(body: list[ast.stmt], defined: set[str]) -> set[str]:
    """Adds a call of `carried` to each loop in `body`, per name; returns the names that are defined behind it."""
    defined = set(defined)
    for statement in body:
        if isinstance(statement, ast.If):
            defined |= _watch_loops(statement.body, defined) & _watch_loops(statement.orelse, defined)
        elif isinstance(statement, (ast.For, ast.While)):
            stored = {node.id: node for node in _stored(statement)}
            own = {statement.target.id} if isinstance(statement, ast.For) else set()
            _watch_loops(statement.body, defined | own)  # what a loop defines ends with it
            if not _is_unrolled(statement):
                for name in sorted(stored.keys() & defined - own):
                    before = f"_before_{statement.lineno}_{name}"
                    statement.body.insert(0, _at(statement, f"{before} = {name}"))
                    check = f"interpreter_logic.carried({name!r}, {before}, {name})"
                    statement.body.append(_at(stored[name], check))
        else:
            defined |= {node.id for node in _stored(statement)}
    return defined


def _stored(statement: ast.stmt) -> list[ast.Name]:
    """The names that a statement assigns to, in the order of the lines."""
    names = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return sorted(names, key=lambda name: name.lineno)


def _at(node: ast.AST, text: str) -> ast.stmt:
    statement = ast.parse(text).body[0]
    for part in ast.walk(statement):
        ast.copy_location(part, node)
    return statement


# Functions rewritten by Transformer, apart from the interpreter's own.
REWRITTEN: dict[Callable, Callable] = {}
