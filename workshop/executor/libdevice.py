"""Functions of the vendors' mathematical libraries, by their symbols: CUDA's libdevice and AMD's OCML.

float32 is computed in float64 and rounded once, so a card differs by the error of its own function: at most a few
units in the last place (CUDA C++ Programming Guide, "Mathematical Functions").
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from .arithmetic import ELEMENTWISE, odd_fma
from .formats import bits, narrowed, saturated, saturated_unsigned, unsigned, zero_extended
from .front_end import Unsupported


def call(symbol: str, args: list[Tensor], dtype: torch.dtype) -> Tensor:
    """The function `symbol` of args, as `dtype`. Raises Unsupported for a function that is not here."""
    function = _find(symbol)
    if function is None:
        raise Unsupported(f"libdevice {symbol}")
    result = function(*args)
    if dtype == result.dtype:
        return result
    return narrowed(result, dtype) if result.is_floating_point() and dtype.is_floating_point else result.to(dtype)


def _find(symbol: str) -> Callable | None:
    for pattern in (r"__nv_(?:fast_)?(.*)", r"__ocml_(.*)_f(?:32|64)", r"__triton_hip_(?:fast_)?(.*)"):
        if found := re.fullmatch(pattern, symbol):
            name = found[1]
            for each in (name, name.removesuffix("f"), name.removesuffix("d"), name.removesuffix("ll")):
                if each in EXACT:
                    return EXACT[each]
                if each in FUNCTIONS:
                    return _in_float64(FUNCTIONS[each])
            return _directed(name)
    return None


def _in_float64(function: Callable) -> Callable:
    def called(*args: Tensor) -> Tensor:
        result = function(*(each.double() if each.is_floating_point() else each for each in args))
        return narrowed(result, args[0].dtype) if args[0].is_floating_point() else result

    return called


# --- functions of real numbers -----------------------------------------------------------------------------


def _fmod(x: Tensor, y: Tensor | float) -> Tensor:
    """Exact. torch's gives NaN where x is very much larger than y."""
    with np.errstate(all="ignore"):
        return torch.from_numpy(np.asarray(np.fmod(x.numpy(), y.numpy() if isinstance(y, Tensor) else y)))


def _cbrt(x: Tensor) -> Tensor:
    return torch.from_numpy(np.cbrt(x.numpy()))


def _of_turns(x: Tensor, ahead: int) -> Tensor:
    """sin(pi (x + ahead / 2)), exact where it is 0 or 1."""
    rest = _fmod(x, 2.0)
    quarter = torch.round(2 * rest)
    rest = (rest - quarter / 2) * math.pi  # in -pi/4 .. pi/4
    turn = quarter.nan_to_num().long() + ahead & 3
    sine = torch.where(turn & 1 == 0, torch.sin(rest), torch.cos(rest))
    return torch.where(turn >= 2, -sine, sine)


def _sinpi(x: Tensor) -> Tensor:
    return torch.where(x == torch.round(x), 0 * x, _of_turns(x, 0))


def _cospi(x: Tensor) -> Tensor:
    return _of_turns(x, 1) + 0.0  # no -0


def _bessel(function: Callable) -> Callable:
    """torch's modified Bessel functions give NaN for infinity."""
    return lambda x: torch.where(x.isinf(), x.abs() if function is torch.special.i0 else x, function(x))


def _erfcinv(x: Tensor) -> Tensor:
    return torch.where(x < 0, math.nan, torch.special.ndtri(x / 2) * -math.sqrt(0.5))


def _round(x: Tensor) -> Tensor:
    """To the nearest integer, halves away from zero."""
    whole = torch.trunc(x)
    away = torch.where(whole.isinf(), x, whole + torch.copysign(((x - whole).abs() >= 0.5).to(x.dtype), x))
    return torch.copysign(away, x)


def _remainder(x: Tensor, y: Tensor) -> Tensor:
    """IEEE's: x - n y for the integer n that is nearest to x / y, the even one of two."""
    size = y.abs()
    rest = _fmod(x.abs(), 2 * size)  # in 0 .. 2 y
    above = rest > size - rest
    rest = torch.where(above, rest - size, rest)
    rest = torch.where(above & (rest >= size - rest), rest - size, rest)
    return torch.where(x.isfinite() & y.isinf(), x, torch.copysign(torch.ones_like(x), x) * rest)


def _gamma(x: float) -> float:
    try:
        return math.gamma(x)
    except OverflowError:
        return math.copysign(math.inf, x)
    except ValueError:
        return math.copysign(math.inf, x) if x == 0 else math.nan


def _tgamma(x: Tensor) -> Tensor:
    with np.errstate(all="ignore"):
        return torch.from_numpy(np.vectorize(_gamma, otypes=[np.float64])(x.numpy()))


def _norm(*parts: Tensor, inverse: bool = False) -> Tensor:
    """The length of a vector, or 1 / length. An infinite part makes it infinite, beside NaN as well."""
    sizes = torch.stack(torch.broadcast_tensors(*parts)).abs()
    scale = sizes.nan_to_num(0.0, 0.0).amax(0)
    scale = torch.where(scale > 0, scale, 1)
    root = torch.sqrt(sum((part / scale) ** 2 for part in parts))
    infinite = sizes.isinf().any(0)
    if inverse:
        return torch.where(infinite, 0.0, 1 / root / scale)
    return torch.where(infinite, math.inf, root * scale)


def _inverse_norm(*parts: Tensor) -> Tensor:
    return _norm(*parts, inverse=True)


def _logb(x: Tensor) -> Tensor:
    exponent = (torch.frexp(x).exponent - 1).double()
    return torch.where(x == 0, -math.inf, torch.where(x.isfinite(), exponent, x.abs()))


def _ilogb(x: Tensor) -> Tensor:
    least = torch.iinfo(torch.int32).min
    exponent = torch.where(x.isinf(), torch.iinfo(torch.int32).max, torch.frexp(x).exponent - 1)
    return torch.where((x == 0) | x.isnan(), least, exponent).to(torch.int32)


FUNCTIONS: dict[str, Callable] = {
    "acos": torch.acos, "acosh": torch.acosh, "asin": torch.asin, "asinh": torch.asinh, "atan": torch.atan,
    "atan2": torch.atan2, "atanh": torch.atanh, "cbrt": _cbrt, "cos": torch.cos, "cosh": torch.cosh,
    "cospi": _cospi, "cyl_bessel_i0": _bessel(torch.special.i0), "i0": _bessel(torch.special.i0),
    "cyl_bessel_i1": _bessel(torch.special.i1), "i1": _bessel(torch.special.i1), "erf": torch.erf, "erfc": torch.erfc,
    "erfcinv": _erfcinv, "erfcx": torch.special.erfcx,
    "erfinv": torch.erfinv, "exp": torch.exp, "exp10": lambda x: torch.pow(10.0, x), "exp2": torch.exp2,
    "expm1": torch.expm1, "hypot": torch.hypot, "j0": torch.special.bessel_j0, "j1": torch.special.bessel_j1,
    "lgamma": torch.lgamma, "log": torch.log, "log10": torch.log10, "log1p": torch.log1p, "log2": torch.log2,
    "logb": _logb, "norm3d": _norm, "norm4d": _norm, "normcdf": lambda x: torch.erfc(x * -math.sqrt(0.5)) / 2,
    "normcdfinv": torch.special.ndtri, "pow": torch.pow, "powi": torch.pow, "pown": torch.pow,
    "rcbrt": lambda x: 1 / _cbrt(x), "rhypot": _inverse_norm,
    "rnorm3d": _inverse_norm, "rnorm4d": _inverse_norm,
    "rsqrt": torch.rsqrt, "sin": torch.sin, "sinh": torch.sinh, "sinpi": _sinpi, "tan": torch.tan,
    "tanh": torch.tanh, "tgamma": _tgamma, "y0": torch.special.bessel_y0, "y1": torch.special.bessel_y1,
    "remainder": _remainder, "dividef": torch.div,
}  # fmt: skip

# --- functions whose results are exact ---------------------------------------------------------------------


def _fdim(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x <= y, 0.0, x - y)


def _ldexp(x: Tensor, exponent: Tensor) -> Tensor:
    with np.errstate(all="ignore"):
        return torch.from_numpy(np.ldexp(x.numpy(), exponent.numpy()))


def _bit_length(x: Tensor) -> Tensor:
    """Of unsigned integers."""
    low = torch.frexp((x.long() & 0xFFFFFFFF).double()).exponent
    if x.dtype != torch.int64:
        return low
    high = torch.frexp((x >> 32 & 0xFFFFFFFF).double()).exponent
    return torch.where(high > 0, high + 32, low)


def _popc(x: Tensor) -> Tensor:
    return sum((x >> i & 1 for i in range(8 * x.dtype.itemsize)), torch.zeros_like(x)).to(torch.int32)


def _brev(x: Tensor) -> Tensor:
    width = 8 * x.dtype.itemsize
    return sum(((x >> i & 1) << (width - 1 - i) for i in range(width)), torch.zeros_like(x))


def _byte_perm(x: Tensor, y: Tensor, selector: Tensor) -> Tensor:
    both = zero_extended(x) | y.long() << 32
    parts = (((both >> (selector.long() >> 4 * i & 7) * 8) & 255) << 8 * i for i in range(4))
    return sum(parts).to(torch.int32)


def _mul24(extend: Callable) -> Callable:
    return lambda x, y: (extend(x) * extend(y)).to(torch.int32)


def _sad(extend: Callable) -> Callable:
    return lambda x, y, z: ((extend(x) - extend(y)).abs() + z).to(torch.int32)


def _average(extend: Callable, up: int) -> Callable:
    return lambda x, y: (extend(x) + extend(y) + up >> 1).to(torch.int32)


def _mulhi(x: Tensor, y: Tensor) -> Tensor:
    """The upper half of the signed product."""
    upper = ELEMENTWISE["umulhi"](x, y)
    return upper - torch.where(x < 0, y, 0) - torch.where(y < 0, x, 0)


def _as_integer(test: Callable) -> Callable:
    return lambda x: test(x).to(torch.int32)


EXACT: dict[str, Callable] = {
    "abs": torch.abs, "llabs": torch.abs, "iabs": torch.abs, "fabs": torch.abs, "ceil": torch.ceil,
    "copysign": torch.copysign, "fdim": _fdim, "floor": torch.floor, "fma": ELEMENTWISE["fma"],
    "fmod": _fmod, "ilogb": lambda x: _ilogb(x.double()), "ldexp": _ldexp, "scalbn": _ldexp,
    "llrint": lambda x: saturated(torch.round(x), torch.int64),
    "llround": lambda x: saturated(_round(x), torch.int64), "nearbyint": torch.round, "rint": torch.round,
    "nextafter": torch.nextafter, "round": _round, "sqrt": ELEMENTWISE["sqrt"], "trunc": torch.trunc,
    "saturate": lambda x: x.nan_to_num(0.0).clamp(0, 1), "finite": _as_integer(torch.isfinite),
    "isfinite": _as_integer(torch.isfinite), "isinf": _as_integer(torch.isinf),
    "isnan": _as_integer(torch.isnan), "signbit": _as_integer(torch.signbit),
    "clz": lambda x: 8 * x.dtype.itemsize - _bit_length(x), "ffs": lambda x: _bit_length(x & -x),
    "popc": _popc, "brev": _brev, "byte_perm": _byte_perm, "mulhi": _mulhi, "mul64hi": _mulhi,
    "umulhi": ELEMENTWISE["umulhi"], "umul64hi": ELEMENTWISE["umulhi"],
    "mul24": _mul24(lambda x: x.long() << 40 >> 40), "umul24": _mul24(lambda x: x.long() & 0xFFFFFF),
    "sad": _sad(Tensor.long), "usad": _sad(zero_extended), "hadd": _average(Tensor.long, 0),
    "rhadd": _average(Tensor.long, 1), "uhadd": _average(zero_extended, 0),
    "urhadd": _average(zero_extended, 1), "double2hiint": lambda x: (bits(x) >> 32).to(torch.int32),
    "double2loint": lambda x: bits(x).to(torch.int32),
    "hiloint2double": lambda high, low: (high.long() << 32 | zero_extended(low)).view(torch.float64),
    "double_as_longlong": bits, "float_as_int": bits, "float_as_uint": bits,
    "int_as_float": lambda x: x.view(torch.float32), "uint_as_float": lambda x: x.view(torch.float32),
    "longlong_as_double": lambda x: x.view(torch.float64),
}  # fmt: skip

# --- rounding in a direction -------------------------------------------------------------------------------

ROUNDED: dict[str, Callable] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "sqrt": torch.sqrt,
    "rcp": torch.reciprocal, "rsqrt": torch.rsqrt, "fma": lambda x, y, z: x * y + z,
}  # fmt: skip
WHOLE = {"rn": torch.round, "rd": torch.floor, "ru": torch.ceil, "rz": torch.trunc}
INTEGERS = {"int": torch.int32, "uint": torch.int32, "ll": torch.int64, "ull": torch.int64}


def _directed(name: str) -> Callable | None:
    """Arithmetic and conversions whose name ends with the rounding: fadd_rd, float2int_ru, int2float_rz."""
    if found := re.fullmatch(r"([fd]?)(add|sub|mul|div|sqrt|rcp|rsqrt)_(r[nduz])|()(fma)f?_(r[nduz])", name):
        operation, how = found[2] or found[5], found[3] or found[6]
        return lambda *args: _rounded(operation, how, args)
    if found := re.fullmatch(r"(float|double)2(u?)(int|ll)_(r[nduz])", name):
        whole, dtype = WHOLE[found[4]], INTEGERS[found[3]]
        convert = saturated_unsigned if found[2] else saturated
        return lambda x: convert(whole(x), dtype)
    if found := re.fullmatch(r"(u?)(int|ll)2(float|double)_(r[nduz])", name):
        dtype = torch.float32 if found[3] == "float" else torch.float64
        return lambda x: _from_integers(x, bool(found[1]), dtype, found[4])
    return None


def _rounded(operation: str, how: str, args: tuple[Tensor, ...]) -> Tensor:
    """In float64, which tells on which side of a float32 the exact result is. float64 itself: to nearest only."""
    dtype = args[0].dtype
    if operation == "fma" and how == "rn":
        return ELEMENTWISE["fma"](*args)
    if how == "rn" or dtype == torch.float64:
        if how != "rn":
            raise Unsupported(f"libdevice {operation} of float64, rounded {how}")
        return narrowed(ROUNDED[operation](*(each.double() for each in args)), dtype)
    if operation in ("add", "sub", "fma"):  # the only ones of which float64 may lose bits: a sum of unlike sizes
        x, y, z = (args[0], torch.ones_like(args[0]), args[1]) if operation != "fma" else args
        exact = odd_fma(x, y, -z if operation == "sub" else z)
    else:
        exact = ROUNDED[operation](*(each.double() for each in args))
    return _turned(exact, narrowed(exact, dtype), how)


def _turned(exact: Tensor, nearest: Tensor, how: str) -> Tensor:
    """The neighbour of `nearest` that the direction `how` asks for."""
    value = nearest.double()
    down, up = torch.tensor(-math.inf, dtype=nearest.dtype), torch.tensor(math.inf, dtype=nearest.dtype)
    zero = torch.zeros((), dtype=nearest.dtype)
    if how == "rz":
        return torch.where(value.abs() > exact.abs(), torch.nextafter(nearest, zero), nearest)
    if how == "rd":
        return torch.where(value > exact, torch.nextafter(nearest, down), nearest)
    return torch.where(value < exact, torch.nextafter(nearest, up), nearest)


def _from_integers(x: Tensor, without_sign: bool, dtype: torch.dtype, how: str) -> Tensor:
    values = unsigned(x) if without_sign else x.numpy()
    nearest = torch.from_numpy(values.astype(np.float32 if dtype == torch.float32 else np.float64))
    if how == "rn" or (dtype == torch.float64 and x.dtype == torch.int32):
        return nearest
    if x.dtype == torch.int64:
        raise Unsupported(f"libdevice of 64 bits to floating point, rounded {how}")
    return _turned(torch.from_numpy(values.astype(np.float64)), nearest, how)
