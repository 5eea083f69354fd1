"""Steps of a variant that change names, the order of statements, loops, functions and launches."""

from __future__ import annotations

import ast
import copy

from .rewriting import each, is_constexpr, kernel_of, modules, names_in
from .roles import called, is_kernel, is_launch
from .trees import changed, expression, places, statements, text

# -- names and the order of statements -------------------------------------------------------------------------


def other_names(tree, kind, chosen):
    """Local variables and parameters get other names, except those that a caller may name."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if not functions:
        return None
    tree = copy.deepcopy(tree)
    function = chosen.choice([node for node in tree.body if isinstance(node, ast.FunctionDef)])
    local = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    local |= {a.arg for a in function.args.args if not is_constexpr(a)}
    local -= {a.arg for inner in ast.walk(function) if isinstance(inner, (ast.FunctionDef, ast.Lambda))
              and inner is not function for a in inner.args.args}  # fmt: skip
    local -= {inner.name for inner in ast.walk(function) if isinstance(inner, ast.FunctionDef)} | {"n_elements"}
    local -= {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    new = {name: f"{chosen.choice(('my', 'the', 'v', 'tmp'))}_{number}_{name[:3]}" for number, name in
           enumerate(sorted(local))}  # fmt: skip
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in new:
            node.id = new[node.id]
        elif isinstance(node, ast.arg) and node.arg in new:
            node.arg = new[node.arg]
    return tree if new else None


def other_order(tree, kind, chosen):
    """Two neighbouring assignments that do not need each other change places."""
    found = []
    for place in places(tree):
        body = getattr(place.node, "body", None)
        for i, (one, other) in enumerate(zip(body, body[1:])) if isinstance(body, list) else ():
            if isinstance(one, ast.Assign) and isinstance(other, ast.Assign) and _independent(one, other):
                found.append((place.path, i))
    if not found or kind == "jax":
        return None
    tree = copy.deepcopy(tree)
    path, i = chosen.choice(found)
    node = tree
    for name, index in path:
        node = getattr(node, name) if index is None else getattr(node, name)[index]
    node.body[i], node.body[i + 1] = node.body[i + 1], node.body[i]
    return tree


def _independent(one: ast.Assign, other: ast.Assign) -> bool:
    stores = names_in(one, ast.Store), names_in(other, ast.Store)
    return not (stores[0] & (names_in(other) | stores[1]) or stores[1] & names_in(one))


def longer_sums(tree, kind, chosen):
    """`a += b` as `a = a + b`."""
    return each(
        tree,
        lambda p: isinstance(p.node, ast.AugAssign) and isinstance(p.node.op, ast.Add),
        lambda p: statements(f"{text(p.node.target)} = {text(p.node.target)} + {text(p.node.value)}"),
        chosen,
    )


def results_first(tree, kind, chosen):
    """`return expression` as an assignment and a return."""
    return each(
        tree,
        lambda p: isinstance(p.node, ast.Return) and p.node.value is not None and not text(p.node.value).isidentifier()
        and len(p.parents) == 2,
        lambda p: statements(f"the_result = {text(p.node.value)}\nreturn the_result"),
        chosen,
    )  # fmt: skip


def pointers_first(tree, kind, chosen):
    """The address of a load or a store gets a name of its own."""
    def new(place):
        access = next(n for n in ast.walk(place.node) if called(n) in ("tl.load", "tl.store"))
        pointer = text(access.args[0])
        access = copy.deepcopy(place.node)
        inner = next(n for n in ast.walk(access) if called(n) in ("tl.load", "tl.store"))
        inner.args[0] = expression("place_of_it")
        return [*statements(f"place_of_it = {pointer}"), access]

    def wanted(place):
        found = [n for n in ast.walk(place.node) if called(n) in ("tl.load", "tl.store")]
        simple = isinstance(place.node, (ast.Assign, ast.Expr)) and kernel_of(place)
        return bool(simple and len(found) == 1 and isinstance(found[0].args[0], ast.BinOp))

    return each(tree, wanted, new, chosen)


# -- loops and functions ---------------------------------------------------------------------------------


def while_loops(tree, kind, chosen):
    """`for i in range(a, b, c)` as a while loop."""
    def new(place):
        node = place.node
        name, (start, stop, step) = text(node.target), map(text, node.iter.args)
        loop = ast.While(expression(f"{name} < {stop}"), [*node.body, *statements(f"{name} += {step}")], [])
        return [*statements(f"{name} = {start}"), loop]

    def wanted(place):
        node = place.node
        return isinstance(node, ast.For) and called(node.iter) in ("range", "tl.range") and len(node.iter.args) == 3

    return each(tree, wanted, new, chosen)


def helper_functions(tree, kind, chosen):
    """The right side of an assignment becomes a function; in a kernel it has a @triton.jit of its own."""
    known = modules(tree)
    found = [
        p for p in places(tree)
        if isinstance(p.node, ast.Assign) and isinstance(p.node.targets[0], ast.Name) and p.function is not None
        and isinstance(p.node.value, (ast.BinOp, ast.Call)) and not names_in(p.node.value) <= known
        and not any(isinstance(n, (ast.Lambda, ast.comprehension)) for n in ast.walk(p.node.value))
        and (kind != "kernel" or kernel_of(p))
    ]  # fmt: skip
    if not found:
        return None
    place = chosen.choice(found)
    kernel = kernel_of(place)
    fixed = {a.arg for a in kernel.args.args if is_constexpr(a)} if kernel else set()
    names = sorted(names_in(place.node.value) - known)
    parameters = ", ".join(f"{name}: tl.constexpr" if name in fixed else name for name in names)
    name = f"helper_{chosen.randint(10, 99)}"
    helper = statements(f"def {name}({parameters}):\n    return {text(place.node.value)}")[0]
    if kernel:
        helper.decorator_list = [expression("triton.jit")]
    call = ast.Assign(place.node.targets, expression(f"{name}({', '.join(names)})"))
    tree = changed(tree, place.path, call)
    tree.body.insert(place.path[0][1], helper)
    return tree


def wrapped(tree, kind, chosen):
    """The function of the exercise calls another one that does the work."""
    entries = [n for n in tree.body if isinstance(n, ast.FunctionDef) and not n.decorator_list]
    if not entries:
        return None
    tree = copy.deepcopy(tree)
    function = [n for n in tree.body if isinstance(n, ast.FunctionDef) and not n.decorator_list][-1]
    if any(isinstance(n, ast.Name) and n.id == function.name for n in ast.walk(tree)):
        return None
    outer = function.name
    parameters = ", ".join(a.arg for a in function.args.args)
    function.name = f"{outer}_inside"
    tree.body += statements(f"def {outer}({parameters}):\n    return {function.name}({parameters})")
    return tree


def with_docstrings(tree, kind, chosen):
    tree = copy.deepcopy(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            node.body.insert(0, ast.Expr(ast.Constant("Computes its part.")))
            return tree
    return None


# -- the host --------------------------------------------------------------------------------------------


def other_blocks(tree, kind, chosen):
    """Another block size: a power of two in the place of the one that the host function names."""
    if kind == "value":
        return None
    sizes = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value in (256, 1024, 8192)}
    if not sizes or any("Config" in text(node) for node in tree.body):
        return None
    old = chosen.choice(sorted(sizes))
    new = chosen.choice({256: (64, 128, 512, 1024), 1024: (256, 512, 2048), 8192: (4096, 2048)}[old])
    tree = copy.deepcopy(tree)
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and not is_kernel(function):
            for node in ast.walk(function):
                if isinstance(node, ast.Constant) and node.value == old and type(node.value) is int:
                    node.value = new
    return tree


def keyword_launches(tree, kind, chosen):
    """The kernel is called with names of its parameters."""
    parameters = {n.name: [a.arg for a in n.args.args] for n in tree.body if is_kernel(n)}

    def wanted(place):
        node = place.node
        kernel = text(node.func.value) if is_launch(node) and isinstance(node.func, ast.Subscript) else ""
        return kernel in parameters and bool(node.args)

    def new(place):
        node = place.node
        names = parameters[text(node.func.value)]
        given = [ast.keyword(name, value) for name, value in zip(names, node.args)]
        return ast.Call(node.func, [], [*given, *node.keywords])

    return each(tree, wanted, new, chosen)


def grids_as_functions(tree, kind, chosen):
    def wanted(place):
        return isinstance(place.node, ast.Subscript) and is_launch(place.parents[-1]) and not any(
            isinstance(n, ast.Lambda) for n in ast.walk(place.node)
        ) and isinstance(place.node.slice, ast.Tuple)  # fmt: skip

    return each(
        tree, wanted, lambda p: expression(f"{text(p.node.value)}[lambda meta: {text(p.node.slice)}]"), chosen
    )


def other_allocations(tree, kind, chosen):
    return each(
        tree,
        lambda p: text(p.node) in (
            "torch.empty(x.shape, dtype=x.dtype, device=x.device)", "torch.empty_like(x)",
            "torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)",
        ),
        lambda p: expression(chosen.choice((
            "torch.zeros(x.shape, dtype=x.dtype, device=x.device)", "x.new_empty(x.shape)",
            "torch.empty(tuple(x.shape), device=x.device, dtype=x.dtype)",
        ))),
        chosen,
    )  # fmt: skip


def other_arithmetic(tree, kind, chosen):
    """Plain numbers: rounding down with divmod, and minima of a list."""
    if kind != "value":
        return None

    def new(place):
        node = place.node
        if isinstance(node, ast.BinOp):
            return expression(f"divmod({text(node.left)}, {text(node.right)})[0]")
        return expression(f"{called(node)}([{', '.join(map(text, node.args))}])")

    return each(
        tree,
        lambda p: p.function is not None and (isinstance(p.node, ast.BinOp) and isinstance(p.node.op, ast.FloorDiv)
        or called(p.node) in ("min", "max") and len(p.node.args) > 1),
        new,
        chosen,
    )  # fmt: skip


STEPS = (
    other_names, other_order, longer_sums, results_first, pointers_first, while_loops, helper_functions, wrapped,
    with_docstrings, other_blocks, keyword_launches, grids_as_functions, other_allocations, other_arithmetic,
)  # fmt: skip
