"""What the steps of a variant share: places that are rewritten once each, and the names that a place may use."""

from __future__ import annotations

import ast

from .roles import is_kernel
from .trees import Place, changed, places


def each(tree, wanted, new, chosen, most: int = 3) -> ast.Module | None:
    """Up to `most` of the places that `wanted` accepts, rewritten by `new`, one after the other."""
    done = None
    for _ in range(chosen.randint(1, most)):
        found = [place for place in places(tree) if wanted(place) and not _in_new_code(place)]
        if not found:
            break
        place = chosen.choice(found)
        tree = done = changed(tree, place.path, _marked(new(place)))
    return done


def _marked(new):
    for node in new if isinstance(new, list) else [new]:
        node.rewritten = True  # so that no place is rewritten twice
    return new


def _in_new_code(place: Place) -> bool:
    return any(getattr(node, "rewritten", False) for node in (*place.parents, place.node))


def kernel_of(place: Place) -> ast.FunctionDef | None:
    return next((node for node in place.parents if is_kernel(node)), None)


def names_in(node: ast.AST, kind: type = ast.Load) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, kind)}


def modules(tree: ast.Module) -> set[str]:
    """Names at module level: imports, functions and constants."""
    found = {"float", "int", "range", "min", "max", "tuple", "str", "len"}
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        else:
            found |= {node.name} if isinstance(node, ast.FunctionDef) else names_in(node, ast.Store)
    return found


def is_constexpr(argument: ast.arg) -> bool:
    return argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)
