"""Triton's interpreter, made faithful where it silently computes something else than a GPU, and faster.

Inside `with faithful():` and nowhere else:

* bfloat16 arithmetic, casts, products and reductions give what a GPU gives (the interpreter computes with the
  bit patterns as integers), and float32 is rounded to the nearest bfloat16, ties to even (it truncates);
* a scalar comparison can be combined with a block's (in 3.9 the interpreter's own labels do not let it);
* a constant to the left of an operator gives a block (the interpreter wraps the block into a constant);
* `max` and `min` of blocks work lane by lane (Python's take one of the blocks);
* reductions and scans with a combine function of one's own work on whole blocks (element by element, one of
  9000 numbers takes the interpreter seconds);
* a loop that makes a block of a number is refused, as the compiler does;
* `and`, `or`, `not` on blocks work lane by lane, and a block as a condition is refused, as the compiler does
  (the interpreter takes every block for true);
* `libdevice` functions compute (the interpreter returns None);
* numpy's warnings about infinities and NaN are silent;
* errors in a kernel reach the caller as they were raised, not wrapped in InterpreterError;
* the language is prepared once, and not again at every call of `tl.max` or `tl.sum`.

It rests on private names of Triton 3.4 to 3.9; `memory_checker.self_test` says when they do not fit.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import math
import types
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter
from triton.language.extra import libdevice

Handle = interpreter.TensorHandle


@contextlib.contextmanager
def faithful() -> Iterator[None]:
    """Run interpreted kernels inside; everything is put back at the end. Not for use in several threads."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_prepared_language())
        for owner, replacements in _replacements():
            stack.enter_context(replaced(owner, **replacements))
        stack.enter_context(np.errstate(all="ignore"))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def warm_up() -> None:
    """Read and rewrite Triton's own device functions now, for a process that will open no more files."""
    with faithful():
        for module in (tl.core, tl.math, tl.standard, tl.random):
            for function in list(vars(module).values()):
                if isinstance(function, interpreter.InterpretedFunction):
                    function.rewrite()


@contextlib.contextmanager
def replaced(owner: object, **attributes: object) -> Iterator[None]:
    """Attributes of a module or class, replaced for a while; one that did not exist is removed again."""
    missing = object()
    before = {name: vars(owner).get(name, missing) for name in attributes}
    try:
        for name, value in attributes.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in before.items():
            if value is missing:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def _replacements() -> list[tuple[object, dict[str, object]]]:
    builder = interpreter.InterpreterBuilder
    return [
        (builder, _bfloat16_operations(builder)),
        (tl.constexpr, _constant_operations()),
        (interpreter.ReduceOps, _reductions()),
        (interpreter.ScanOps, _scans()),
        (interpreter.FunctionRewriter, {"ast_transformer": _Transformer()}),
        (interpreter.InterpretedFunction, {"rewritten_fn": _REWRITTEN}),
        (interpreter.GridExecutor, {"__call__": _unwrapped(interpreter.GridExecutor.__call__)}),
        (interpreter, {"interpreter_logic": _Logic}),
        (libdevice, {name: _elementwise(function) for name, function in _LIBDEVICE.items()}),
    ]


# --- once per use: the language ----------------------------------------------------------------------------


@functools.cache
def _interpreted_language() -> list[tuple[object, dict[str, object]]]:
    """The interpreter's versions of what is in `tl`: per module or class, the attributes that differ."""
    owners = [tl, tl.core, tl.math, tl.tensor, tl.dtype, tl.core.tensor_descriptor_base]
    before = [dict(vars(owner)) for owner in owners]
    interpreter._patch_lang(types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    changes = []
    for owner, attributes in zip(owners, before, strict=True):
        changed = {name: value for name, value in vars(owner).items() if attributes.get(name) is not value}
        if owner is tl.tensor:  # Triton 3.6 writes int(array of one element), which numpy 2.4 refuses
            changed["__index__"] = lambda scalar: int(scalar.handle.data.item())
        changes.append((owner, changed))
        for name in changed:
            if name in attributes:
                setattr(owner, name, attributes[name])
            elif name in vars(owner):
                delattr(owner, name)
    return changes


@contextlib.contextmanager
def _prepared_language() -> Iterator[None]:
    """The interpreter's versions in place; its own preparation, at every call, does nothing meanwhile."""
    nothing_to_restore = types.SimpleNamespace(restore=lambda: None)
    with contextlib.ExitStack() as stack:
        for owner, changed in _interpreted_language():
            stack.enter_context(replaced(owner, **changed))
        stack.enter_context(replaced(interpreter, _patch_lang=lambda function: nothing_to_restore))
        yield


def _unwrapped(launch: Callable) -> Callable:
    def call(self, *args, **kwargs):
        try:
            return launch(self, *args, **kwargs)
        except interpreter.InterpreterError as error:
            errors: list[BaseException] = [error]
            while isinstance(errors[-1], interpreter.InterpreterError) and errors[-1].__cause__ is not None:
                errors.append(errors[-1].__cause__)
            raise errors[-1].with_traceback(_joined(errors)) from None

    return call


def _joined(errors: list[BaseException]) -> types.TracebackType | None:
    """One traceback of them all: each wrapping, at each call of a function, has cut it."""
    joined = None
    for error in reversed(errors):
        entries, entry = [], error.__traceback__
        while entry:
            entries.append(entry)
            entry = entry.tb_next
        for entry in reversed(entries):
            joined = types.TracebackType(joined, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return joined


# --- conditions and boolean operators ----------------------------------------------------------------------


class _Logic:
    """What the compiler does with `and`, `or`, `not` and conditions; the transformed kernels call it."""

    @staticmethod
    def both(left: object, right: Callable[[], object]) -> object:
        if not _is_block(left):
            return left and right()
        return _Logic._combine(left, right(), "__and__")

    @staticmethod
    def either(left: object, right: Callable[[], object]) -> object:
        if not _is_block(left):
            return left or right()
        return _Logic._combine(left, right(), "__or__")

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


class _Transformer(interpreter.ASTTransformer):
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


_REWRITTEN: dict[
    Callable, Callable
] = {}  # functions rewritten by _Transformer, apart from the interpreter's own


# --- bfloat16 ----------------------------------------------------------------------------------------------


def bfloat16_bits(values: np.ndarray) -> np.ndarray:
    """float32 values -> bfloat16 bit patterns (uint16), rounded to nearest, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)


def bfloat16_values(bits: np.ndarray) -> np.ndarray:
    """bfloat16 bit patterns (uint16) -> float32 values."""
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)


def _is_bfloat16(handle: Handle) -> bool:
    return handle.data.dtype.char == "H" and handle.dtype.scalar == tl.bfloat16


def _widened(handle: Handle) -> Handle:
    return Handle(bfloat16_values(handle.data), tl.float32) if _is_bfloat16(handle) else handle


def _narrowed(handle: Handle) -> Handle:
    """A float32 result as bfloat16; the result of a comparison is int1."""
    if handle.data.dtype.kind != "f":
        return Handle(handle.data, tl.int1)
    return Handle(bfloat16_bits(handle.data), tl.bfloat16)


def _rounding(operation: Callable, operands: int) -> Callable:
    """`operation` of the builder, in float32 and rounded once where an operand is bfloat16."""

    def call(self, *args):
        if any(_is_bfloat16(handle) for handle in args[:operands]):
            return _narrowed(operation(self, *map(_widened, args[:operands]), *args[operands:]))
        result = operation(self, *args)
        if result.data.dtype.char == "?":
            result.dtype = tl.int1  # a comparison's result is labelled with the dtype of what was compared
        return result

    return call


def _bfloat16_operations(builder: type) -> dict[str, Callable]:
    cast, convert, dot, atomic = (
        vars(builder)[name] for name in ("cast_impl", "create_fp_to_fp", "create_dot", "create_atomic_rmw")
    )

    def cast_impl(self, src, dst_type):
        if tl.bfloat16 in (src.dtype.scalar, dst_type.scalar):
            src = _widened(src)
            if dst_type.scalar == tl.bfloat16:
                return _narrowed(cast(self, src, tl.float32))
            if dst_type.scalar == tl.float32:
                return src
        return cast(self, src, dst_type)

    def create_fp_to_fp(self, src, dst_type, rounding_mode):
        nearest = rounding_mode != interpreter._ir.ROUNDING_MODE.RTZ
        if dst_type.scalar == tl.bfloat16 and src.dtype.scalar == tl.float32 and nearest:
            return _narrowed(src)
        return convert(self, _widened(src), dst_type, rounding_mode)

    def create_dot(self, a, b, d, *options):
        if not _is_bfloat16(d):
            return dot(self, _widened(a), _widened(b), d, *options)
        return _narrowed(dot(self, _widened(a), _widened(b), _widened(d), *options))

    def create_atomic_rmw(self, operation, ptr, value, *rest):
        if _is_bfloat16(value):
            raise NotImplementedError("atomic operations on bfloat16: accumulate in a float32 tensor instead")
        return atomic(self, operation, ptr, value, *rest)

    def get_bf16(self, value):
        return Handle(bfloat16_bits(np.array([value], dtype=np.float32)), tl.bfloat16)

    def elementwise(name, operands):
        return _rounding(vars(builder)[name], operands)

    return {
        "binary_op": elementwise("binary_op", 2),
        "unary_op": elementwise("unary_op", 1),
        "ternary_op": elementwise("ternary_op", 3),
        "create_fma": elementwise("create_fma", 3),
        "create_rsqrt": elementwise("create_rsqrt", 1),
        "cast_impl": cast_impl,
        "create_fp_to_fp": create_fp_to_fp,
        "create_dot": create_dot,
        "create_atomic_rmw": create_atomic_rmw,
        "get_bf16": get_bf16,
    }


def _in_float32(apply_impl: Callable) -> Callable:
    """A reduction or scan; bfloat16 operands are reduced in float32 and the result is rounded once."""

    def as_tensor(handle: Handle, like: tl.tensor, scalar: tl.dtype) -> tl.tensor:
        kind = tl.block_type(scalar, list(like.shape)) if like.type.is_block() else scalar
        return tl.tensor(handle, kind)

    def call(self, inputs):
        if not any(_is_bfloat16(tensor.handle) for tensor in inputs):
            return apply_impl(self, inputs)
        wide = tuple(as_tensor(_widened(t.handle), t, _widened(t.handle).dtype.scalar) for t in inputs)
        results = apply_impl(self, wide)
        several = isinstance(results, (list, tuple))
        narrow = [
            as_tensor(_narrowed(result.handle), result, tl.bfloat16)
            if _is_bfloat16(tensor.handle) and result.handle.data.dtype.kind == "f"
            else result
            for result, tensor in zip(results if several else [results], inputs, strict=False)
        ]
        return narrow if several else narrow[0]

    return call


# --- constants ---------------------------------------------------------------------------------------------


def _constant_operations() -> dict[str, Callable]:
    """With a block to the right, the block's own operation."""

    def giving_way(operation):
        return lambda self, other: NotImplemented if isinstance(other, tl.tensor) else operation(self, other)

    names = {f"__{name[3:]}" for name in vars(tl.tensor) if name.startswith("__r")} & vars(tl.constexpr).keys()
    return {name: giving_way(vars(tl.constexpr)[name]) for name in names}


# --- reductions and scans ----------------------------------------------------------------------------------


def _reductions() -> dict[str, Callable]:
    own = vars(interpreter.ReduceOps)
    return {
        "apply_impl": _in_float32(own["apply_impl"]),
        "generic_reduce": _or_one_by_one(_reduced, own["generic_reduce"]),
    }


def _scans() -> dict[str, Callable]:
    own = vars(interpreter.ScanOps)
    return {
        "apply_impl": _in_float32(own["apply_impl"]),
        "generic_scan": _or_one_by_one(_scanned, own["generic_scan"]),
    }


def _or_one_by_one(at_once: Callable, one_by_one: Callable) -> Callable:
    """A combine function that cannot take blocks (it has an `if`) is given numbers, as the interpreter does."""

    def call(self, inputs):
        try:
            results = at_once(self, inputs)
        except Exception:
            return one_by_one(self, inputs)
        return [self.to_tensor(data, tensor.dtype) for data, tensor in zip(results, inputs, strict=True)]

    return call


def _reduced(self, inputs) -> list[np.ndarray]:
    """In pairs of neighbours, again and again: the order stays, as an associative function may ask."""
    axis = 0 if self.axis is None else self.axis
    blocks = [t.handle.data if self.axis is not None else t.handle.data.reshape(-1) for t in inputs]
    values = [np.moveaxis(block, axis, -1) for block in blocks]
    while values[0].shape[-1] > 1:
        values = _combined(self, inputs, [v[..., 0::2] for v in values], [v[..., 1::2] for v in values])
    values = [v[..., 0] for v in values]
    if not self.keep_dims:
        return values
    everywhere = (1,) * inputs[0].handle.data.ndim
    return [v.reshape(everywhere) if self.axis is None else np.expand_dims(v, axis) for v in values]


def _scanned(self, inputs) -> list[np.ndarray]:
    """Each element with the one 1, 2, 4, … before it."""
    values = [np.moveaxis(t.handle.data, self.axis, -1) for t in inputs]
    index = np.arange(values[0].shape[-1])
    step = 1
    while step < index.size:
        combined = _combined(self, inputs, [np.roll(v, step, -1) for v in values], values)
        values = [np.where(index < step, v, c) for v, c in zip(values, combined, strict=True)]
        step *= 2
    return [np.moveaxis(v, -1, self.axis) for v in values]


def _combined(self, inputs, left: list[np.ndarray], right: list[np.ndarray]) -> list[np.ndarray]:
    dtypes = [tensor.dtype for tensor in inputs]
    operands = [self.to_tensor(data, dtype) for data, dtype in zip(left + right, dtypes * 2, strict=True)]
    results = self.combine_fn(*operands)
    results = results if isinstance(results, tuple) else (results,)
    data = [r.handle.data if isinstance(r, tl.tensor) else r for r in results]
    return [np.broadcast_to(d, part.shape).astype(part.dtype) for d, part in zip(data, left, strict=True)]


# --- libdevice ---------------------------------------------------------------------------------------------

_erfc = np.vectorize(math.erfc, otypes=[np.float32])
_LIBDEVICE: dict[str, Callable] = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil,
    "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh, "div_rn": np.divide,
    "erf": interpreter.np_erf_fp32, "erfc": _erfc, "exp": np.exp, "exp10": lambda x: 10 ** x, "exp2": np.exp2,
    "expm1": np.expm1, "fast_dividef": np.divide, "fast_expf": np.exp, "fast_logf": np.log,
    "fast_powf": np.power, "floor": np.floor, "fma": lambda x, y, z: x * y + z, "fmod": np.fmod,
    "hypot": np.hypot, "isinf": np.isinf, "isnan": np.isnan, "ldexp": np.ldexp, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "nearbyint": np.rint, "pow": np.power,
    "rint": np.rint, "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh, "trunc": np.trunc,
}  # fmt: skip


def _elementwise(function: Callable) -> Callable:
    def call(*arguments):
        tensors = [interpreter.interpreter_semantic.to_tensor(argument) for argument in arguments]
        tensors = list(tl.broadcast(*tensors)) if len(tensors) == 2 else tensors
        data = function(*(tensor.handle.data for tensor in tensors))
        scalar = tl.int32 if data.dtype == np.bool_ else tensors[0].dtype
        data = data.astype(interpreter._get_np_dtype(scalar))
        shape = [int(size) for size in tensors[0].shape]
        return tl.tensor(Handle(data, scalar), tl.block_type(scalar, shape) if shape else scalar)

    return call
