"""Repairs Triton's interpreter where it silently computes something else than a GPU, and makes it faster.

Inside `with faithful():` and nowhere else:

* bfloat16 arithmetic, casts, products and reductions give what a GPU gives (the interpreter computes with the
  bit patterns as integers), and float32 is rounded to the nearest bfloat16, ties to even (it truncates);
* a scalar comparison can be combined with a block's (in 3.9 the interpreter's own labels do not let it);
* a constant to the left of an operator gives a block (the interpreter wraps the block into a constant);
* `max` and `min` of blocks work lane by lane (Python's take one of the blocks);
* reductions and scans with a user's combine function work on whole blocks (the interpreter goes element by
  element, and takes seconds for 9000 numbers);
* a loop that turns a number into a block is refused, as the compiler does;
* `and`, `or`, `not` on blocks work lane by lane, and a block as a condition is refused, as the compiler does
  (the interpreter treats every block as true);
* `libdevice` functions compute (the interpreter returns None);
* random numbers are drawn by NumPy (the interpreter needs most of a kernel's time for them);
* numpy's warnings about infinities and NaN are silent;
* errors in a kernel reach the caller as they were raised, not wrapped in InterpreterError;
* the language is prepared once, and not again at every call of `tl.max` or `tl.sum`.

It uses private names of Triton 3.4 to 3.9. `memory_checker.self_test` says when another version lacks them.
"""

from __future__ import annotations

import contextlib
import functools
import types
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter
from triton.language.extra import libdevice

from . import bfloat16, philox, quick, reductions, rewriting
from .bfloat16 import bfloat16_bits, bfloat16_values
from .libdevice import FUNCTIONS, elementwise

__all__ = ["bfloat16_bits", "bfloat16_values", "faithful", "replaced", "warm_up"]


_inside = False


@contextlib.contextmanager
def faithful() -> Iterator[None]:
    """Run interpreted kernels inside. Everything is restored at the end. Do not use it in several threads.

    Inside of another one it does nothing: who runs many launches enters it once.
    """
    global _inside
    if _inside:
        yield
        return
    with contextlib.ExitStack() as stack:
        stack.enter_context(_prepared_language())
        for owner, replacements in _replacements():
            stack.enter_context(replaced(owner, **replacements))
        stack.enter_context(np.errstate(all="ignore"))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", RuntimeWarning)
        _inside = True
        try:
            yield
        finally:
            _inside = False


def warm_up() -> None:
    """Read and rewrite Triton's own device functions now, for a process that will open no more files."""
    modules = tl.core, tl.math, tl.standard, tl.random
    functions = [each for module in modules for each in vars(module).values()]  # before one of them is replaced
    with faithful():
        for function in functions:
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


@functools.cache
def _replacements() -> list[tuple[object, dict[str, object]]]:
    builder = interpreter.InterpreterBuilder
    return [
        (builder, bfloat16.operations(builder)),
        (tl.constexpr, _constant_operations()),
        (interpreter.ReduceOps, reductions.reductions()),
        (interpreter.ScanOps, reductions.scans()),
        (interpreter.FunctionRewriter, {"ast_transformer": rewriting.Transformer()}),
        (interpreter.InterpretedFunction, {"rewritten_fn": rewriting.REWRITTEN}),
        (interpreter.GridExecutor, {"__call__": _unwrapped(interpreter.GridExecutor.__call__)}),
        (interpreter, {"interpreter_logic": rewriting.Logic}),
        (tl.random, philox.generator()),
        (libdevice, {name: elementwise(function) for name, function in FUNCTIONS.items()}),
        *quick.replacements(),
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
        changes.append((owner, {name: quick.direct(value) for name, value in changed.items()}))
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


# --- constants ---------------------------------------------------------------------------------------------


def _constant_operations() -> dict[str, Callable]:
    """With a block to the right, the block's own operation."""

    def giving_way(operation):
        return lambda self, other: NotImplemented if isinstance(other, tl.tensor) else operation(self, other)

    names = {f"__{name[3:]}" for name in vars(tl.tensor) if name.startswith("__r")} & vars(tl.constexpr).keys()
    return {name: giving_way(vars(tl.constexpr)[name]) for name in names}
