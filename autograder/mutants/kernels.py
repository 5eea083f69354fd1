"""Mutations of kernels. Each takes a place and its role, and gives what to write there and the kind of mutation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .roles import Role, called
from .trees import Place, but, expression, statements, text

Change = tuple[ast.AST | list[ast.stmt], str]  # what to write at the place, and a key of fair.FAIR


def _without_keyword(call: ast.Call, *names: str) -> ast.Call:
    return but(call, keywords=[k for k in call.keywords if k.arg not in names])


def accesses(place: Place, role: Role) -> Iterator[Change]:
    """Loads and stores without a mask, without a value for masked-off lanes, or with another one."""
    node = place.node
    if called(node) not in ("tl.load", "tl.store"):
        return
    kind = called(node).removeprefix("tl.")
    keywords = {k.arg: k.value for k in node.keywords}
    if "mask" in keywords:
        yield _without_keyword(node, "mask", "other"), f"{kind} without mask"
    if "other" in keywords:
        yield _without_keyword(node, "other"), "no other"
        for written in ("0.0", "float('inf')", "1.0", "-1.0"):
            others = [k if k.arg != "other" else ast.keyword("other", expression(written)) for k in node.keywords]
            yield but(node, keywords=others), "other value"
    if kind == "store":
        yield from _other_store(node, text(place.function))


def _other_store(store: ast.Call, known: str) -> Iterator[Change]:
    pointer, value = text(store.args[0]), store.args[1]
    for ours, theirs in (("output_ptr", "x_ptr"), ("output_ptr", "in_ptr"), ("output_row", "in_row")):
        if ours in pointer and theirs in known:
            yield but(store, args=[expression(pointer.replace(ours, theirs)), value]), "store through the input"
    yield but(store, args=[store.args[0], expression(f"{text(value)} * 2")]), "number"
    yield but(store, args=[store.args[0], expression("0.0")]), "stores zeros"


def masks(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    if role != Role.MASK or not isinstance(node, ast.Compare):
        return
    left, bound = text(node.left), text(node.comparators[0])
    for written, kind in (
        (f"{left} <= {bound}", "mask too wide"),
        (f"{left} != {bound}", "mask too wide"),
        (f"{left} < {bound} + 1", "mask too wide"),
        (f"{left} >= 0", "mask too wide"),
        (f"{left} < 2 * {bound}", "mask too wide"),
        (f"{left} < {bound} - 1", "mask too narrow"),
        (f"{left} < {bound} // 2", "mask too narrow"),
        (f"{left} > {bound}", "mask inverted"),
        (f"{left} >= {bound}", "mask inverted"),
        (f"{left} == {bound}", "mask inverted"),
    ):
        yield expression(written), kind


def addresses(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    if role not in (Role.ADDRESS, Role.RANDOM):
        return
    kind = "address" if role == Role.ADDRESS else "random address"
    if isinstance(node, ast.BinOp):
        yield from _other_address(node, kind)
    name = called(node)
    if name == "tl.program_id":
        own = "tl.program_id(0)"
        for written in ("tl.program_id(1)", "tl.program_id(2)", f"{own} * 0", "tl.num_programs(0)", f"{own} + 1"):
            if written != text(node).replace("axis=", ""):
                yield expression(written), "program id"
    if name == "tl.arange" and role == Role.ADDRESS:
        size = text(node.args[1])
        yield expression(f"1 + {text(node)}"), kind
        yield expression(f"2 * {text(node)}"), kind
        yield expression(f"tl.arange(0, {size}) // 2"), kind
        yield expression(f"tl.arange(0, {size} // 2)"), kind


def _other_address(node: ast.BinOp, kind: str) -> Iterator[Change]:
    left, right, whole = text(node.left), text(node.right), text(node)
    if isinstance(node.op, ast.Mult):
        for written in (f"{left} + {right}", left, right, f"{left} * ({right} - 1)", f"{left} * {right} * 2"):
            yield expression(written), kind
    elif isinstance(node.op, ast.Add):
        for written in (f"{left} - {right}", f"{whole} + 1", f"{whole} - 1"):
            yield expression(written), kind
        if "_ptr" not in left or "_ptr" in left and isinstance(node.left, ast.BinOp):
            yield expression(left), kind
        if not any(word in left for word in ("_ptr", "_row")):
            yield expression(right), kind
            yield expression(f"{left} * {right}"), kind


def generators(place: Place, role: Role) -> Iterator[Change]:
    """The random numbers of dropout."""
    node = place.node
    if not called(node).startswith("tl.rand"):
        return
    seed, offsets = node.args
    for written, kind in (("0", "seed"), ("12345", "seed"), (f"{text(seed)} % 2", "seed")):
        yield but(node, args=[expression(written), offsets]), kind
    for written in ("pid", "lanes", "lanes // 2", "0 * lanes", "pid + lanes", f"({text(offsets)}) % 64"):
        yield but(node, args=[seed, expression(written)]), "random address"


def loops(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    if called(node) not in ("range", "tl.range") or len(node.args) < 3 or role != Role.BOUND:
        return
    start, stop, step = map(text, node.args[:3])
    stores = any(called(inner) == "tl.store" for inner in ast.walk(place.statement))
    for written, kind in (
        (f"{step}, {stop}, {step}", "loop bound"),
        (f"{start}, {stop} - {step}, {step}", "loop bound"),
        (f"{start}, {stop} // {step}, {step}", "loop bound"),
        (f"{start}, {step}, {step}", "loop bound"),
        (f"{start}, {stop}, 2 * {step}", "loop step"),
        (f"{start}, {stop}, {step} + 1", "loop step"),
        (f"{start}, {stop}, 0", "loop step"),
        (f"{stop}, {start}, {step}", "loop bound"),
        (f"{start}, {stop} - 1, {step}", "loop bound" if "program" in text(place.statement) else ""),
        (f"{start}, {stop}, 1", "" if stores else "loop step"),
    ):
        if kind:
            yield but(node, args=[*expression(f"f({written})").args]), kind


_OTHER_OPERATORS = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add, ast.Mult),
    ast.Mult: (ast.Add, ast.Div, ast.Sub),
    ast.Div: (ast.Mult, ast.Sub),
}
_OTHER_FUNCTIONS = {
    "tl.exp": ("tl.exp2", "tl.log", "tl.sqrt", "tl.abs", ""),
    "tl.max": ("tl.min", "tl.sum"),
    "tl.sum": ("tl.max", "tl.min"),
    "tl.maximum": ("tl.minimum",),
}


def numbers(place: Place, role: Role, dropout: bool = False) -> Iterator[Change]:
    node = place.node
    if role != Role.VALUE:
        return
    kind = "dropout number" if dropout else _kind_of_number(place)
    if isinstance(node, ast.BinOp):
        for operator in _OTHER_OPERATORS.get(type(node.op), ()):
            yield but(node, op=operator()), kind
        if isinstance(node.op, (ast.Sub, ast.Div)):
            yield but(node, left=node.right, right=node.left), kind
        yield node.left, kind
        yield node.right, kind
    elif isinstance(node, ast.Call) and called(node) in _OTHER_FUNCTIONS:
        for name in _OTHER_FUNCTIONS[called(node)]:
            yield (but(node, func=expression(name)) if name else node.args[0]), kind
        if called(node) in ("tl.max", "tl.sum"):
            yield node.args[0], "number, or a block for a number"
        if called(node) == "tl.maximum":
            yield from ((argument, kind) for argument in node.args)
    elif called(node) == "tl.where":
        condition, yes, no = node.args
        yield but(node, args=[condition, no, yes]), kind
        for chosen in (yes, no):
            yield chosen, "stores zeros" if dropout and text(chosen) == "0.0" else kind
    elif isinstance(node, ast.Compare):
        other = {ast.GtE: ast.Lt, ast.Lt: ast.GtE, ast.Eq: ast.NotEq}.get(type(node.ops[0]))
        if other:
            yield but(node, ops=[other()]), kind
    elif isinstance(node, ast.Constant) and type(node.value) is float and not _inside(place, "float"):
        values = (node.value + 1.0, 10 * node.value, -node.value) if node.value else (1.0, -1.0)
        yield from ((ast.Constant(value), kind) for value in values)


def starting_values(place: Place, role: Role) -> Iterator[Change]:
    """`maximum = -float('inf')` before a loop."""
    if role == Role.VALUE and text(place.node) == "-float('inf')" and not isinstance(place.parents[-1], ast.Compare):
        for written in ("0.0", "float('inf')", "1.0", "-1.0"):
            yield expression(written), "number of the first maximum"


def _kind_of_number(place: Place) -> str:
    written = text(place.statement)
    in_loop = any(isinstance(node, ast.For) for node in place.parents)
    if in_loop and ("max_new" in written or "new_max" in written or "shift" in written):
        return "number of the recurrence"
    return "number of the first maximum" if "max" in written else "number"


def _inside(place: Place, function: str) -> bool:
    return called(place.parents[-1]) == function


def casts(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to"):
        return
    if role == Role.VALUE and text(node.args[0]) == "tl.float32" and not _only_for_a_maximum(place):
        for name, kind in (("float16", "narrow type"), ("bfloat16", "narrow type"), ("int32", "integer type")):
            yield but(node, args=[expression(f"tl.{name}")]), kind


def _only_for_a_maximum(place: Place) -> bool:
    """Whether the block goes into a maximum only. A rounded maximum is right: it is subtracted everywhere."""
    loop = next((node for node in reversed(place.parents) if isinstance(node, ast.For)), None)
    return loop is not None and "tl.exp" not in text(loop)


def assignments(place: Place, role: Role) -> Iterator[Change]:
    """Statements left out, sums that begin anew, and stores that are not there."""
    node = place.node
    if isinstance(node, ast.AugAssign):
        yield statements(f"{text(node.target)} = {text(node.value)}"), "number"
        yield [but(node, op=ast.Sub())], "number"
        yield [but(node, op=ast.Mult())], "number"
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        name, own = node.targets[0].id, place.parents[-1]
        later = [n for n in ast.walk(place.function) if isinstance(n, ast.Name) and n.id == name]
        stored = [n for n in later if isinstance(n.ctx, ast.Store)]
        if len(stored) == 1:
            yield [], "statement of a kernel left out"
        elif isinstance(own, ast.For) and text(node.value).isidentifier():
            yield [], "number of the recurrence"
    elif isinstance(node, ast.Expr) and called(node.value) == "tl.store":
        stores = [n for n in ast.walk(place.function) if called(n) == "tl.store"]
        if len(stores) == 1:
            yield [], "no store"


def names(place: Place, role: Role) -> Iterator[Change]:
    """A misspelt name, and a variable in the place of another one."""
    node = place.node
    of_triton = isinstance(node, ast.Attribute) and text(node.value) == "tl" and role != Role.SIGNATURE
    if of_triton and node.attr not in ("float32", "int64", "constexpr"):
        yield but(node, attr=node.attr + "s"), "unknown name in a kernel"
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node.id in ("tl", "float", "range"):
        return
    if role == Role.SIGNATURE or _inside(place, "tl.constexpr"):
        return
    yield but(node, id=node.id + "_"), "unknown name in a kernel"
    for one, other, kind in (
        ("row_stride", "output_row_stride", "strides"),
        ("output_row_stride", "row_stride", "strides"),
        ("x_stride", "output_stride", "strides"),
        ("output_stride", "x_stride", "strides"),
        ("row_stride", "n_cols", "strides"),
        ("output_row_stride", "n_cols", ""),
        ("x_stride", "n_cols", "strides"),
        ("x_ptr", "y_ptr", "load from another tensor"),
        ("y_ptr", "x_ptr", "load from another tensor"),
        ("row_sum", "row_max", "another variable"),
        ("in_exp_sum", "in_max", "another variable"),
    ):
        parameters = {a.arg for a in place.function.args.args}
        local = {n.id for n in ast.walk(place.function) if isinstance(n, ast.Name)}
        if kind and node.id == one and other in parameters | local:
            yield but(node, id=other), kind


def signatures(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.arg) and node.annotation is not None and text(node.annotation) == "tl.constexpr":
        body = "\n".join(map(text, place.parents[-2].body))
        if f", {node.arg})" in body:
            yield but(node, annotation=None), "no constexpr"
    if called(node) == "tl.program_id":
        yield but(node, args=[], keywords=[]), "no axis"


def bodies(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.FunctionDef):
        for written in ("pass", "..."):
            yield [but(node, body=statements(written))], "no kernel body"
        kept = [d for d in node.decorator_list if "jit" not in text(d)]
        yield [but(node, decorator_list=kept)], "no decorator"


MUTATIONS = (
    accesses, masks, addresses, generators, loops, numbers, starting_values, casts, assignments, names, signatures,
    bodies,
)  # fmt: skip
