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

from .arithmetic import bits, by_c, by_numpy, fma, narrowed, odd_fma, saturated, umulhi, unsigned, zero_extended
from .program import Type, Unsupported


def call(symbol: str, args: list[Tensor], type: Type) -> Tensor:
    """The function `symbol` of args, as `type`. Raises Unsupported for a function that is not here."""
    dtype = type.dtype
    found = re.fullmatch(r"__nv_(?:fast_)?(.*)|__ocml_(.*)_f(?:32|64)|__triton_hip_(?:fast_)?(.*)", symbol)
    name = next(filter(None, found.groups()), "") if found else ""
    for each in (name, name.removesuffix("f"), name.removesuffix("d"), name.removesuffix("ll")):
        if each in EXACT:
            result = EXACT[each](*args)
            break
        if each in FUNCTIONS:
            result = FUNCTIONS[each](*(x.double() if x.is_floating_point() else x for x in args))
            break
    else:
        result = _directed(name, symbol, args)
    return narrowed(result, dtype) if result.dtype == torch.float64 and dtype.is_floating_point else result.to(dtype)


_fmod = by_numpy(np.fmod, 2)  # torch's gives NaN where x is very much larger than y
_cbrt = by_numpy(np.cbrt)


def _of_turns(x: Tensor, ahead: int) -> Tensor:
    """sin(pi (x + ahead / 2)), exact where it is 0 or 1."""
    rest = _fmod(x, 2.0)
    quarter = torch.round(2 * rest)
    rest = (rest - quarter / 2) * math.pi  # in -pi/4 .. pi/4
    turn = quarter.nan_to_num().long() + ahead & 3
    sine = torch.where(turn & 1 == 0, torch.sin(rest), torch.cos(rest))
    return torch.where(turn >= 2, -sine, sine)


def _round(x: Tensor) -> Tensor:
    """To the nearest integer, halves away from zero."""
    whole = torch.trunc(x)
    return torch.copysign(torch.where((x - whole).abs() >= 0.5, whole + torch.sign(x), whole), x)


def _norm(*parts: Tensor, inverse: bool = False) -> Tensor:
    """The length of a vector, or 1 / length. An infinite part makes it infinite, beside NaN as well."""
    sizes = torch.stack(torch.broadcast_tensors(*parts)).abs()
    scale = sizes.nan_to_num(0.0, 0.0).amax(0)
    scale = torch.where(scale > 0, scale, 1)
    root = torch.sqrt(sum((part / scale) ** 2 for part in parts))
    length = 1 / root / scale if inverse else root * scale
    return torch.where(sizes.isinf().any(0), 0.0 if inverse else math.inf, length)


def _bit_length(x: Tensor) -> Tensor:
    """Of unsigned integers."""
    low, high = (torch.frexp((half & 0xFFFFFFFF).double()).exponent for half in (x.long(), x.long() >> 32))
    return torch.where(high > 0, high + 32, low) if x.dtype == torch.int64 else low


def _byte_perm(x: Tensor, y: Tensor, selector: Tensor) -> Tensor:
    both = zero_extended(x) | y.long() << 32
    return sum(((both >> (selector.long() >> 4 * i & 7) * 8) & 255) << 8 * i for i in range(4))


def _brev(x: Tensor) -> Tensor:
    """The bits in the opposite order."""
    last = 8 * x.dtype.itemsize - 1
    return sum(((x >> i & 1) << last - i for i in range(last + 1)), torch.zeros_like(x))


def _mulhi(x: Tensor, y: Tensor) -> Tensor:
    return umulhi(x, y) - torch.where(x < 0, y, 0) - torch.where(y < 0, x, 0)


# Functions of float64 and of integers; first those that torch has by the same name.
_TORCH = """acos acosh asin asinh atan atanh atan2 cos cosh erf erfc erfinv exp exp2 expm1 hypot lgamma log log10 log1p
log2 pow rsqrt sin sinh tan tanh ceil floor trunc abs copysign isfinite isinf isnan signbit"""
FUNCTIONS: dict[str, Callable] = {name: getattr(torch, name) for name in _TORCH.split()}
FUNCTIONS |= {name: getattr(torch.special, f"bessel_{name}") for name in ("j0", "j1", "y0", "y1")}
FUNCTIONS |= {
    **dict.fromkeys(["i0", "cyl_bessel_i0"], lambda x: torch.where(x.isinf(), math.inf, torch.special.i0(x))),
    **dict.fromkeys(["i1", "cyl_bessel_i1"], lambda x: torch.where(x.isinf(), x, torch.special.i1(x))),  # torch: NaN
    "llabs": torch.abs, "iabs": torch.abs, "fabs": torch.abs, "nearbyint": torch.round, "rint": torch.round,
    "round": _round, "llrint": lambda x: saturated(torch.round(x), torch.int64), "finite": torch.isfinite,
    "llround": lambda x: saturated(_round(x), torch.int64), "saturate": lambda x: x.nan_to_num(0.0).clamp(0, 1),
    "cbrt": _cbrt, "rcbrt": lambda x: 1 / _cbrt(x), "fmod": _fmod, "fdividef": torch.div,
    "remainder": lambda x, y: by_c("remainder", 2)(x, y),
    "sinpi": lambda x: torch.where(x == torch.round(x), 0 * x, _of_turns(x, 0)),
    "cospi": lambda x: _of_turns(x, 1) + 0.0,  # no -0
    "erfcx": torch.special.erfcx,
    "erfcinv": lambda x: torch.where(x < 0, math.nan, torch.special.ndtri(x / 2) * -math.sqrt(0.5)),
    "normcdf": lambda x: torch.erfc(x * -math.sqrt(0.5)) / 2, "normcdfinv": torch.special.ndtri,
    "exp10": lambda x: torch.pow(10.0, x), "powi": torch.pow, "pown": torch.pow,
    "tgamma": lambda x: by_c("tgamma")(x), "logb": lambda x: by_c("logb")(x),
    "ilogb": lambda x: saturated(by_c("logb")(x), torch.int32),
    **dict.fromkeys(["norm3d", "norm4d"], _norm),
    **dict.fromkeys(["rhypot", "rnorm3d", "rnorm4d"], lambda *parts: _norm(*parts, inverse=True)),
    "fdim": lambda x, y: torch.where(x <= y, 0.0, x - y),
    "ldexp": by_numpy(np.ldexp, 2), "scalbn": by_numpy(np.ldexp, 2),
    "clz": lambda x: 8 * x.dtype.itemsize - _bit_length(x), "ffs": lambda x: _bit_length(x & -x),
    "popc": lambda x: sum(x >> i & 1 for i in range(8 * x.dtype.itemsize)), "brev": _brev,
    "byte_perm": _byte_perm, "mul24": lambda x, y: (x.long() << 40 >> 40) * (y.long() << 40 >> 40),
    "umul24": lambda x, y: (x.long() & 0xFFFFFF) * (y.long() & 0xFFFFFF),
    "sad": lambda x, y, z: (x.long() - y.long()).abs() + z,
    "usad": lambda x, y, z: (zero_extended(x) - zero_extended(y)).abs() + z,
    "hadd": lambda x, y: x.long() + y.long() >> 1, "rhadd": lambda x, y: x.long() + y.long() + 1 >> 1,
    "uhadd": lambda x, y: zero_extended(x) + zero_extended(y) >> 1,
    "urhadd": lambda x, y: zero_extended(x) + zero_extended(y) + 1 >> 1,
    "int_as_float": lambda x: x.view(torch.float32), "uint_as_float": lambda x: x.view(torch.float32),
    "longlong_as_double": lambda x: x.view(torch.float64), "double2hiint": lambda x: bits(x) >> 32,
    "hiloint2double": lambda high, low: (high.long() << 32 | zero_extended(low)).view(torch.float64),
    "double2loint": bits, "double_as_longlong": bits,
}  # fmt: skip
# Functions that see a number's own format.
EXACT: dict[str, Callable] = {
    "fma": fma, "sqrt": by_numpy(np.sqrt), "nextafter": torch.nextafter, "mulhi": _mulhi,
    "mul64hi": _mulhi, "umulhi": umulhi, "umul64hi": umulhi, "float_as_int": bits,
    "float_as_uint": bits,
}  # fmt: skip

# --- rounding in a direction -------------------------------------------------------------------------------

ROUNDED: dict[str, Callable] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "sqrt": torch.sqrt,
    "rcp": torch.reciprocal, "rsqrt": torch.rsqrt, "fma": fma,
}  # fmt: skip
WHOLE = {"rn": torch.round, "rd": torch.floor, "ru": torch.ceil, "rz": torch.trunc}


def _directed(name: str, symbol: str, args: list[Tensor]) -> Tensor:
    """Arithmetic and conversions whose name ends with the rounding: fadd_rd, float2int_ru, int2float_rz.

    float64 tells on which side of a float32 the exact result is. float64 itself is rounded to nearest only.
    """
    x, name, how, known = args[0], name[:-3], name[-2:], args[0].dtype in (torch.float32, torch.int32)
    if how in WHOLE and (found := re.fullmatch(r"(?:float|double)2(u?)(int|ll)", name)):
        return saturated(WHOLE[how](x), torch.int32 if found[2] == "int" else torch.int64, signed=not found[1])
    if found := re.fullmatch(r"(u?)(?:int|ll)2(float|double)", name):
        values = unsigned(x) if found[1] else x.numpy()
        exact = torch.from_numpy(values.astype("f8"))
        nearest = torch.from_numpy(values.astype("f4")) if found[2] == "float" else exact
    elif found := re.fullmatch(r"[fd]?(add|sub|mul|div|sqrt|rcp|rsqrt|fma)f?", name):
        if known and found[1] in ("add", "sub", "fma"):  # a sum of unlike sizes is more than float64 holds
            y, z = args[1:] if found[1] == "fma" else (torch.ones_like(x), args[1])
            exact = odd_fma(x, y, -z if found[1] == "sub" else z)
        else:
            exact = ROUNDED[found[1]](*(each.double() for each in args))
        nearest = narrowed(exact, x.dtype)
    if not found or how not in WHOLE or how != "rn" and not known:
        raise Unsupported(f"libdevice {symbol}")
    if how == "rn":
        return nearest
    value, toward = nearest.double(), {"rz": 0.0, "rd": -math.inf, "ru": math.inf}[how]
    beyond = {"rz": value.abs() > exact.abs(), "rd": value > exact, "ru": value < exact}[how]
    return torch.where(beyond, torch.nextafter(nearest, torch.tensor(toward, dtype=nearest.dtype)), nearest)
