"""`libdevice` functions by NumPy; the interpreter's own return None."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter

_erfc = np.vectorize(math.erfc, otypes=[np.float32])
FUNCTIONS: dict[str, Callable] = {
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


def elementwise(function: Callable) -> Callable:
    def call(*arguments):
        tensors = [interpreter.interpreter_semantic.to_tensor(argument) for argument in arguments]
        tensors = list(tl.broadcast(*tensors)) if len(tensors) == 2 else tensors
        data = function(*(tensor.handle.data for tensor in tensors))
        scalar = tl.int32 if data.dtype == np.bool_ else tensors[0].dtype
        data = data.astype(interpreter._get_np_dtype(scalar))
        shape = [int(size) for size in tensors[0].shape]
        return tl.tensor(interpreter.TensorHandle(data, scalar), tl.block_type(scalar, shape) if shape else scalar)

    return call
