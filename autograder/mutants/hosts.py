"""Mutations of host functions: the grid, the arguments of the launch, the output, and what is returned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .kernels import Change
from .roles import Role, called, is_launch
from .trees import Place, but, expression, statements, text


def grids(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    if role != Role.GRID:
        return
    if called(node) == "triton.cdiv":
        count, block = map(text, node.args)
        for written, kind in (
            (f"{count} // {block}", "grid"),
            (f"triton.cdiv({count}, {block}) - 1", "grid"),
            (f"triton.cdiv({count}, 2 * {block})", "grid"),
            ("1", "grid"),
            (f"{count} / {block}", "grid is no tuple of integers"),
        ):
            yield expression(written), kind
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in ("n", "n_rows"):
        if called(place.parents[-1]):
            return
        for written in (f"{node.id} - 1", f"{node.id} + 1", f"{node.id} // 2", "1"):
            yield expression(written), "grid"
    elif isinstance(node, ast.Tuple) and len(node.elts) == 2:
        yield but(node, elts=node.elts[::-1]), "grid"
        yield but(node, elts=node.elts[:1]), "grid"
    elif isinstance(node, ast.Tuple) and len(node.elts) == 1 and not isinstance(place.parents[-1], ast.Return):
        yield expression(f"[str({text(node.elts[0])})]"), "grid is no tuple of integers"


def launches(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    if not is_launch(node):
        return
    arguments = node.args
    for i, argument in enumerate(arguments):
        if not isinstance(argument, ast.Starred):
            yield but(node, args=arguments[:i] + arguments[i + 1 :]), "argument left out"
    for i, (one, other) in enumerate(zip(arguments, arguments[1:])):
        kind = _kind_of_swap(text(one), text(other))
        if kind:
            yield but(node, args=[*arguments[:i], other, one, *arguments[i + 2 :]]), kind
    for i, argument in enumerate(arguments):
        for written, kind in _other_arguments(text(argument)):
            if written == "x" and "x" not in {a.arg for a in place.function.args.args}:
                continue
            yield but(node, args=[*arguments[:i], expression(written), *arguments[i + 1 :]]), kind
    for i, keyword in enumerate(node.keywords):
        if keyword.arg and keyword.arg.startswith(("BLOCK", "QUARTER")):
            for written in ("100", "192", f"{text(keyword.value)} + 1"):
                keywords = [*node.keywords[:i], ast.keyword(keyword.arg, expression(written)), *node.keywords[i + 1 :]]
                yield but(node, keywords=keywords), "block is no power of two"
            yield but(node, keywords=node.keywords[:i] + node.keywords[i + 1 :]), "argument left out"


def _kind_of_swap(one: str, other: str) -> str:
    tensors = {"x", "y", "output"}
    if {one, other} == {"x", "output"} or {one, other} == {"y", "output"}:
        return "tensors swapped"
    if ".stride" in one and ".stride" in other:
        return "strides"
    if {one, other} & tensors:
        return "argument twice" if not {one, other} <= tensors else ""
    if {one, other} == {"output.stride(0)", "n_cols"}:  # the output is contiguous
        return ""
    return "length" if ".stride" in one + other or "n_" in one + other else ""


def _other_arguments(written: str) -> Iterator[tuple[str, str]]:
    if written.endswith(".stride(0)"):
        tensor = written.removesuffix(".stride(0)")
        yield f"{tensor}.stride(1)", "strides"
        yield f"{written} + 1", "strides"
        if tensor == "x":
            yield "n_cols", "strides"
        else:
            yield "x.stride(0)", "strides"
    if written in ("n_cols", "n_elements", "n_rows"):
        yield f"{written} - 1", "length"
        yield f"{written} + 1", "length"
        yield f"{written} // 2", "length"
    if written in ("x", "output"):
        yield f"{written}.shape", "shape for a tensor"
    if written == "output":
        yield "x", "launch without the output"
    if written == "y":
        yield "x", "load from another tensor"
    if written == "a":
        for other in ("a + 1", "2 * a", "1 / a", "int(a)"):
            yield other, "number"
    if written == "jnp.asarray(seed, jnp.int32)":
        for other in ("0", "seed // 2", "seed % 3"):
            yield f"jnp.asarray({other}, jnp.int32)", "seed"
    if written == "jnp.asarray(p, jnp.float32)":
        for other in ("1 - p", "p / 2", "0.5", "0.0"):
            yield f"jnp.asarray({other}, jnp.float32)", "dropout number"


def outputs(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    name = called(node)
    if name == "torch.empty_like":
        for keyword, kind in (("dtype=torch.float64", "output dtype"), ("dtype=torch.int32", "output dtype"),
                              ("device='meta'", "output device"), ("device='cuda'", "output device")):  # fmt: skip
            yield expression(f"torch.empty_like({text(node.args[0])}, {keyword})"), kind
        for shape in ("x.numel() + 1", "x.numel() // 2", "2, x.numel()"):
            yield expression(f"torch.empty({shape}, dtype=x.dtype, device=x.device)"), "output shape"
    elif name in ("torch.empty", "torch.full", "jax.ShapeDtypeStruct") and node.args:
        keywords = {k.arg: k for k in node.keywords}
        given = next((text(a) for a in node.args[1:] if "dtype" in text(a)), "")
        for dtype in ("float64", "int64", "float16", "int8"):
            if "dtype" in keywords:
                new = expression(f"torch.{dtype}")
                yield but(node, keywords=[k if k.arg != "dtype" else ast.keyword("dtype", new) for k in
                                            node.keywords]), "output dtype"  # fmt: skip
            elif given and dtype in ("float16", "int8"):
                yield expression(f"jax.ShapeDtypeStruct({text(node.args[0])}, jnp.{dtype})"), "output dtype"
        if "device" in keywords:
            for device in ("'meta'", "'cuda'"):
                yield but(node, keywords=[k if k.arg != "device" else ast.keyword("device", expression(device)) for k
                                            in node.keywords]), "output device"  # fmt: skip
        shape = text(node.args[0])
        one_dimension = isinstance(node.args[0], ast.Tuple) and len(node.args[0].elts) == 1
        for written in (f"(1, *{shape})", *(() if one_dimension else (f"({shape})[::-1]", f"({shape})[:1]"))):
            yield but(node, args=[expression(written), *node.args[1:]]), "output shape"


def results(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    if not isinstance(node, ast.Return) or node.value is None or not place.parents:
        return
    value = text(node.value)
    if value != "output" or isinstance(place.parents[-1], ast.If):
        return
    for written, kind in (
        ("return", "returns nothing"),
        ("return output, x", "returns no tensor"),
        ("return [output]", "returns no tensor"),
        ("return output.tolist()", "returns no tensor"),
        ("return output.shape", "returns no tensor"),
        ("return output.reshape(-1, 1)", "returns another shape"),
        ("return output[None]", "returns another shape"),
        ("return output.to(torch.float64)", "returns another dtype"),
        ("return output.to(torch.int8)", "returns another dtype"),
        ("return output * 2", "host arithmetic"),
        ("return output + 0.0", "host arithmetic"),
        ("return torch.nan_to_num(output)", "host arithmetic"),
    ):
        yield statements(written), kind
    parameters = [a.arg for a in place.function.args.args]
    for name in ("x", "y"):
        if name in parameters:
            yield statements(f"return {name}"), "returns an input"


def guards(place: Place, role: Role) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.If) and not isinstance(place.parents[-1], ast.If):
        condition = text(node.test)
        if "interpreting" not in condition:
            yield [but(node, test=expression(f"not ({condition})"))], "guard inverted"
    if role == Role.GUARD and isinstance(node, ast.Constant) and node.value == 2:
        yield ast.Constant(1), "guard"
    if role == Role.GUARD and isinstance(node, ast.Tuple) and len(node.elts) > 1:
        for i in range(len(node.elts)):
            yield but(node, elts=node.elts[:i] + node.elts[i + 1 :]), "guard"


def misspelt(place: Place, role: Role) -> Iterator[Change]:
    node, parents = place.node, place.parents
    if place.function is None or any(isinstance(parent, (ast.Raise, ast.JoinedStr)) for parent in parents):
        return
    decorators = [inner for decorator in place.function.decorator_list for inner in ast.walk(decorator)]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in decorators:
        yield but(node, id=node.id + "_"), "unknown name on the host"
    modules = ("torch", "triton", "x", "jnp", "jt", "jax")
    if isinstance(node, ast.Attribute) and text(node.value) in modules and node not in decorators:
        yield but(node, attr=node.attr + "s"), "unknown name on the host"
    simple = isinstance(node, ast.Assign) and isinstance(place.parents[-1], ast.FunctionDef)
    if simple:
        yield [], "statement of the host left out"
    if isinstance(node, ast.Expr) and is_launch(node.value):
        yield [], "no store"


def bodies(place: Place, role: Role, entry: str = "") -> Iterator[Change]:
    node = place.node
    if not (isinstance(node, ast.FunctionDef) and node.name == entry):
        return
    for written in ("pass", "...", "return None", "return", "raise NotImplementedError", "return ..."):
        yield [but(node, body=statements(written))], "no body"
    parameters = [argument.arg for argument in node.args.args]
    if parameters[:1] == ["x"]:
        library = "jnp" if "seed" in parameters else "torch"
        yield [but(node, body=statements(f"return {library}.zeros_like(x)"))], "no body"
        yield [but(node, body=statements(f"return {library}.empty_like(x)"))], "fresh memory"


MUTATIONS = (grids, launches, outputs, results, guards, misspelt, bodies)
