"""Steps of a variant that rewrite expressions of kernels."""

from __future__ import annotations

import ast

from .rewriting import each, kernel_of
from .roles import Role, Roles, called
from .trees import expression, statements, text

LOG2_E = "1.4426950408889634"



def commuted(tree, kind, chosen):
    """`a + b` as `b + a`, `a * b` as `b * a`."""
    return each(
        tree,
        lambda p: isinstance(p.node, ast.BinOp) and isinstance(p.node.op, (ast.Add, ast.Mult))
        and p.function is not None and not isinstance(p.node.left, ast.Constant) and "'" not in text(p.node),
        lambda p: ast.BinOp(p.node.right, p.node.op, p.node.left),
        chosen,
    )  # fmt: skip


def other_masks(tree, kind, chosen):
    roles = Roles(tree, kind)

    def new(place):
        left, right = text(place.node.left), text(place.node.comparators[0])
        return expression(chosen.choice((
            f"{right} > {left}", f"~({left} >= {right})", f"{left} <= {right} - 1", f"{right} - {left} > 0",
            f"({left} < {right}) & ({left} >= 0)",
        )))  # fmt: skip

    return each(
        tree,
        lambda p: isinstance(p.node, ast.Compare) and isinstance(p.node.ops[0], ast.Lt) and kernel_of(p)
        and roles.of(p) == Role.MASK,
        new,
        chosen,
        most=1,
    )  # fmt: skip


def positional(tree, kind, chosen):
    """Keywords of loads, stores, reductions and program_id as positional arguments, or the other way round."""
    def new(place):
        node, name = place.node, called(place.node)
        keywords = {k.arg: text(k.value) for k in node.keywords}
        if name == "tl.program_id":
            return expression("tl.program_id(axis=0)" if node.args else "tl.program_id(0)")
        if name in ("tl.max", "tl.sum"):
            return expression(f"{name}({text(node.args[0])}{chosen.choice((', 0', ''))})")
        given = [text(a) for a in node.args] + [keywords[k] for k in ("mask", "other") if k in keywords]
        return expression(f"{name}({', '.join(given)})")

    def wanted(place):
        node, name = place.node, called(place.node)
        if name == "tl.program_id":
            return "1" not in text(node)
        return name in ("tl.load", "tl.store", "tl.max", "tl.sum") and bool(node.keywords)

    return each(tree, wanted, new, chosen)


def as_methods(tree, kind, chosen):
    """`tl.exp(x)` as `x.exp()`, `x.to(t)` as `tl.cast(x, t)`."""
    def wanted(place):
        name = called(place.node)
        if name in ("tl.max", "tl.sum"):
            return True
        return name.endswith(".to") and kernel_of(place) is not None and "tl.program_id" not in name

    def new(place):
        node, name = place.node, called(place.node)
        if name.endswith(".to"):
            return expression(f"tl.cast({text(node.func.value)}, {text(node.args[0])})")
        return expression(f"({text(node.args[0])}).{name.removeprefix('tl.')}(axis=0)")

    return each(tree, wanted, new, chosen)


def powers_of_two(tree, kind, chosen):
    """`tl.exp(x)` as 2 to the power of x log2(e)."""
    return each(
        tree,
        lambda p: called(p.node) == "tl.exp",
        lambda p: expression(f"tl.exp2(({text(p.node.args[0])}) * {LOG2_E})"),
        chosen,
    )


def reciprocals(tree, kind, chosen):
    return each(
        tree,
        lambda p: isinstance(p.node, ast.BinOp) and isinstance(p.node.op, ast.Div) and kernel_of(p)
        and not isinstance(p.node.left, ast.Constant),
        lambda p: expression(f"({text(p.node.left)}) * (1.0 / ({text(p.node.right)}))"),
        chosen,
    )  # fmt: skip


def other_infinities(tree, kind, chosen):
    """`-float('inf')` as float('-inf'), or as a constant of the module."""
    constant = chosen.random() < 0.5
    done = each(
        tree,
        lambda p: text(p.node) == "-float('inf')" and kernel_of(p) and isinstance(p.node, ast.UnaryOp),
        lambda p: expression("LOWEST" if constant else "float('-inf')"),
        chosen,
        most=6,
    )
    if done and constant:
        first = next(i for i, node in enumerate(done.body) if isinstance(node, ast.FunctionDef))
        done.body[first:first] = statements("LOWEST = tl.constexpr(-float('inf'))")
    return done


def turned_selections(tree, kind, chosen):
    """`tl.where(c, a, b)` as `tl.where(~c, b, a)`."""
    def new(place):
        condition, yes, no = map(text, place.node.args)
        return expression(f"tl.where(~({condition}), {no}, {yes})")

    return each(tree, lambda p: called(p.node) == "tl.where" and "in_max_new ==" not in text(p.node), new, chosen)


STEPS = (
    commuted, other_masks, positional, as_methods, powers_of_two, reciprocals, other_infinities, turned_selections,
)  # fmt: skip
