"""The interpreter's own steps with less work: every operation of every program passes through them.

Nothing that a kernel can see changes:

* the overflow checks of integers are left out: the interpreter computes them in int64 and discards the result;
* types are made once for each shape and kind of element, and so is what a block takes from its type; blocks of one
  shape need no comparison of their shapes;
* functions of the language are called without the two functions that Triton wraps around each of them.

What a version of Triton does not have, or has in another form, stays as it is.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable

import triton.language as tl
import triton.runtime.interpreter as interpreter


@functools.cache
def replacements() -> list[tuple[object, dict[str, object]]]:
    """What `faithful.replaced` puts in place, by owner."""
    found: list[tuple[object, dict[str, object]]] = [(interpreter, {"_get_np_dtype": _numpy_dtype()})]
    builder, options = interpreter.interpreter_builder, interpreter.interpreter_builder.options
    if getattr(options, "sanitize_overflow", False) and not getattr(options, "debug", True):
        found.append((builder, {"options": dataclasses.replace(options, sanitize_overflow=False)}))
    if isinstance(tl.block_type(tl.float32, [16]).shape, (tuple, tl.core.tuple)):  # nobody can change it
        found.append((tl.block_type, {"__init__": _block_type(), "to_ir": _to_ir()}))
        found.append((tl.tensor, {"__init__": _tensor()}))
        semantic = type(interpreter.interpreter_semantic)
        found.append((semantic, {"broadcast_impl_value": _broadcast(semantic)}))
    return found


def _numpy_dtype() -> Callable:
    compute, known = interpreter._get_np_dtype, {}

    def numpy_dtype(kind):
        key = type(kind), kind.name
        if key not in known:
            known[key] = compute(kind)
        return known[key]

    return numpy_dtype


def _block_type() -> Callable:
    make, known, shapes = tl.block_type.__init__, {}, {}

    def __init__(self, element_ty, shape):
        sizes = [size.value if isinstance(size, tl.constexpr) else size for size in shape]
        key = type(element_ty), getattr(element_ty, "name", None), *sizes
        if key in known and all(type(size) is int for size in sizes):
            vars(self).update(known[key], element_ty=element_ty)
        else:
            make(self, element_ty, shape)
            self.shape = shapes.setdefault(tuple(sizes), self.shape)
            known[key] = vars(self).copy()

    return __init__


def _to_ir() -> Callable:
    make, known = tl.block_type.to_ir, {}

    def to_ir(self, builder):
        if self.name not in known:
            known[self.name] = make(self, builder)
        return known[self.name]

    return to_ir


def _broadcast(semantic: type) -> Callable:
    broadcast = semantic.broadcast_impl_value

    def broadcast_impl_value(self, lhs, rhs):
        if lhs.type.is_block() and rhs.type.is_block() and lhs.type.shape is rhs.type.shape:
            return lhs, rhs
        return broadcast(self, lhs, rhs)

    return broadcast_impl_value


def _tensor() -> Callable:
    make, known = tl.tensor.__init__, {}

    def __init__(self, handle, type):
        name = type.name
        if name not in known:
            make(self, handle, type)
            known[name] = {key: value for key, value in vars(self).items() if key not in ("handle", "type", "dtype")}
        else:
            vars(self).update(known[name], handle=handle, type=type, dtype=type.scalar)

    return __init__


def direct(function: object) -> object:
    """A function that the interpreter put into the language, without its wrappers; itself if it is none of these."""
    member = (getattr(function, "__kwdefaults__", None) or {}).get("member")
    if not isinstance(member, types.FunctionType) or not tl.core.is_builtin(member):
        return function
    while getattr(member, "__code__", None) is _WRAPPER and hasattr(member, "__wrapped__"):
        member = member.__wrapped__

    @functools.wraps(function)
    def call(*args, **kwargs):
        kwargs["_semantic"] = interpreter.interpreter_semantic
        return member(*args, **kwargs)

    return call


_WRAPPER = tl.core.add.__code__  # of what `tl.core.builtin` puts around a function
