"""bfloat16 in the interpreter: computed in float32 and rounded once, as a GPU does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter

Handle = interpreter.TensorHandle


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
        for handle in args[:operands]:
            if _is_bfloat16(handle):
                return _narrowed(operation(self, *map(_widened, args[:operands]), *args[operands:]))
        result = operation(self, *args)
        if result.data.dtype.char == "?":
            result.dtype = tl.int1  # a comparison's result is labelled with the dtype of what was compared
        return result

    return call


def operations(builder: type) -> dict[str, Callable]:
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


def in_float32(apply_impl: Callable) -> Callable:
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
