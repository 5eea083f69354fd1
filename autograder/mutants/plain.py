"""Mutations of answers that return plain numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .kernels import Change
from .roles import Role
from .trees import Place, but, expression, statements, text

_OPERATORS = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.FloorDiv),
    ast.FloorDiv: (ast.Mult, ast.Mod, ast.Add),
    ast.Div: (ast.Mult,),
}


def arithmetic(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.BinOp):
        for operator in _OPERATORS.get(type(node.op), ()):
            yield but(node, op=operator()), "plain number or an exception"
        yield node.left, "plain number or an exception"
        yield node.right, "plain number or an exception"
    elif isinstance(node, ast.Call) and text(node.func) in ("min", "max"):
        other = "max" if text(node.func) == "min" else "min"
        yield but(node, func=expression(other)), "plain number or an exception"
        if len(node.args) > 1:
            for i in range(len(node.args)):
                yield but(node, args=node.args[:i] + node.args[i + 1 :]), "plain number or an exception"
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        near = (node.value + 1, node.value - 1) if node.value < 16 else (node.value // 2,)
        for value in dict.fromkeys((*near, 2 * node.value, 0, 10 * node.value + 3)):
            if value != node.value:
                yield ast.Constant(value), "plain number or an exception"
    elif isinstance(node, ast.IfExp):
        yield node.body, "plain number or an exception"
        yield node.orelse, "plain number or an exception"


def names(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or place.function is None:
        return
    yield but(node, id=node.id + "_"), "unknown name on the host"
    parameters = [a.arg for a in place.function.args.args]
    if node.id in parameters:
        for other in parameters:
            if other not in (node.id, "device", "arch") and node.id not in ("device", "arch"):
                yield but(node, id=other), "plain number or an exception"


def attributes(place: Place, role: Role) -> Iterator[Change]:
    """Fields of the device that are misspelt or taken for one another."""
    node = place.node
    fields = ("registers", "shared_memory", "max_threads", "multiprocessors", "warp_size")
    if isinstance(node, ast.Attribute) and node.attr in fields:
        yield but(node, attr=node.attr + "_"), "unknown name on the host"
        for other in fields:
            if other != node.attr:
                yield but(node, attr=other), "plain number or an exception"


def forms(place: Place, role: Role) -> Iterator[Change]:
    """Results of another form: a list, a written, a dict with other keys."""
    node = place.node
    if isinstance(node, ast.Return) and node.value is not None:
        value = text(node.value)
        a_dict = isinstance(node.value, (ast.Dict, ast.DictComp))
        for written in (f"[{value}]", f"({value}, 0)", f"list(({value}).values())" if a_dict else f"{{'n': {value}}}"):
            yield [ast.Return(expression(written))], "several values, or one, in another form"
        for written in (f"str({value})", "True"):
            yield [ast.Return(expression(written))], "text or a truth value"
        if not a_dict:
            for written in (f"({value}) + 1", f"2 * ({value})", f"-({value})", f"({value}) / 3"):
                yield [ast.Return(expression(written))], "plain number"
    if isinstance(node, ast.Dict) and place.function is not None:
        for i, key in enumerate(node.keys):
            rest = node.keys[:i] + node.keys[i + 1 :], node.values[:i] + node.values[i + 1 :]
            yield but(node, keys=rest[0], values=rest[1]), "plain number or an exception"
            if isinstance(key, ast.Constant):
                misspelt = [*node.keys[:i], ast.Constant(f"{key.value}s"), *node.keys[i + 1 :]]
                yield but(node, keys=misspelt), "plain number or an exception"


def left_out(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Assign) and isinstance(place.parents[-1], ast.FunctionDef):
        yield [], "unknown name on the host"
    elif isinstance(node, ast.Return) and isinstance(place.parents[-1], ast.FunctionDef):
        yield [], "no body"
    elif isinstance(node, ast.If):
        yield [], "plain number or an exception"
        yield [but(node, test=expression(f"not ({text(node.test)})"))], "plain number or an exception"


def bodies(place: Place, role: Role, entry: str = "") -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.FunctionDef) and node.name == entry:
        for written in ("pass", "...", "return None", "return ...", "raise NotImplementedError"):
            yield [but(node, body=statements(written))], "no body"


MUTATIONS = (arithmetic, names, attributes, forms, left_out, bodies)
