"""Places in a syntax tree, and copies of a tree in which one place is changed."""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Iterator
from dataclasses import dataclass

Step = tuple[str, int | None]  # a field, and the index if the field is a list


@dataclass(frozen=True, eq=False)
class Place:
    """A node, the way to it from the root, and the nodes on that way (the root first)."""

    node: ast.AST
    path: tuple[Step, ...]
    parents: tuple[ast.AST, ...]

    @property
    def statement(self) -> ast.stmt | None:
        """The innermost statement that holds this place; itself if it is a statement."""
        chain = (*self.parents, self.node)
        return next((node for node in reversed(chain) if isinstance(node, ast.stmt)), None)

    @property
    def function(self) -> ast.FunctionDef | None:
        """The outermost function around this place."""
        return next((node for node in self.parents if isinstance(node, ast.FunctionDef)), None)


def places(tree: ast.AST) -> Iterator[Place]:
    """Every node of the tree in the order of the text."""
    yield from _below(tree, (), ())


def _below(node: ast.AST, path: tuple[Step, ...], parents: tuple[ast.AST, ...]) -> Iterator[Place]:
    yield Place(node, path, parents)
    for name, value in ast.iter_fields(node):
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield from _below(child, (*path, (name, index)), (*parents, node))


def changed(tree: ast.Module, path: tuple[Step, ...], new: ast.AST | list[ast.stmt]) -> ast.Module:
    """A tree with `new` at the place. A list of statements replaces one statement; it may be empty.

    Only the nodes on the way to the place are copied; the two trees share the others.
    """
    result = holder = copy.copy(tree)
    for depth, (name, index) in enumerate(path):
        value = getattr(holder, name)
        value = list(value) if isinstance(value, list) else value
        child = copy.copy(value if index is None else value[index]) if depth < len(path) - 1 else new
        if index is None:
            value = child
        elif isinstance(child, list):
            value[index : index + 1] = child or ([ast.Pass()] if len(value) == 1 else [])
        else:
            value[index] = child
        setattr(holder, name, value)
        holder = child
    return result


def expression(source: str) -> ast.expr:
    return ast.parse(source, mode="eval").body


def statements(source: str) -> list[ast.stmt]:
    return ast.parse(source).body


def text(node: ast.AST) -> str:
    return ast.unparse(node)


def but(node: ast.AST, **fields) -> ast.AST:
    """The node with other values in these fields. Its children are shared."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def lines_changed(before: str, after: str) -> str:
    """The lines that differ, as `- old` and `+ new`, without their indentation."""
    old, new = ([line for line in source.splitlines() if line] for source in (before, after))
    parts = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    lines = []
    for kind, a, b, c, d in parts:
        if kind != "equal":
            lines += [f"- {line.strip()}" for line in old[a:b]] + [f"+ {line.strip()}" for line in new[c:d]]
    return "\n".join(lines)


def first_line_changed(before: str, after: str) -> int:
    """The number of the first line that differs, from 1."""
    pairs = zip(before.splitlines(), after.splitlines())
    return next((number for number, (old, new) in enumerate(pairs, 1) if old != new), len(before.splitlines()))
