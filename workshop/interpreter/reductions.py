"""Reductions and scans with a user's combine function, on whole blocks at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter

from .bfloat16 import in_float32


def reductions() -> dict[str, Callable]:
    own = vars(interpreter.ReduceOps)
    return {
        "apply_impl": in_float32(own["apply_impl"]),
        "generic_reduce": _or_one_by_one(_reduced, own["generic_reduce"]),
    }


def scans() -> dict[str, Callable]:
    own = vars(interpreter.ScanOps)
    return {
        "apply_impl": in_float32(own["apply_impl"]),
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
