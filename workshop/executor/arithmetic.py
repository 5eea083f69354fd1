"""The operations of a Program on numbers, in torch: what a GPU computes, for all programs of a launch at once.

A value is a tensor with a leading axis for the programs, then the axes of the block. Any axis may have length 1 where
the block's is longer: it then stands for equal elements. A number (no block) has the leading axis only.

The arithmetic is that of a GPU. Integers wrap around, and carry no sign: u32 is the bits of int32. Denormals stay.
Each operation rounds once to its dtype. Which NaN it is, is not kept. What agrees with a card bit for bit, and what is
bounded, is in benchmarks/recorded/h200_operations.md. Comments that say "a card" mean what an H200 gave there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from . import libdevice
from .formats import CONVERSIONS, bits, by_numpy, torch_dtype, without_sign, zero_extended
from .products import dot, dot_scaled, fma, umulhi
from .program import Enum, Type

# --- integers ----------------------------------------------------------------------------------------------


def _modulo_two(operation: Callable) -> Callable:
    """`operation` of integers, for i1 as well: the lowest bit of the result. torch has no + and - of truth values."""

    def call(x: Tensor, y: Tensor) -> Tensor:
        if x.dtype != torch.bool:
            return operation(x, y)
        return operation(x.to(torch.int8), y.to(torch.int8)).bitwise_and(1).bool()

    return call


def _sdiv(x: Tensor, y: Tensor) -> Tensor:
    """Toward zero. Processors trap at 0, and at the lowest number by -1."""
    low, high = torch.aminmax(y)
    if low > 0 or high < -1:
        return torch.div(x, y, rounding_mode="trunc")
    quotient = torch.div(x, torch.where((y == 0) | (y == -1), 1, y), rounding_mode="trunc")
    return torch.where(y == 0, _by_zero(x), torch.where(y == -1, -x, quotient))


def _by_zero(x: Tensor) -> Tensor:
    """x / 0 and x % 0 on a card: all bits set, of 64 the lower half where x fits there; PTX leaves it open."""
    if x.dtype != torch.int64:
        return torch.full((), -1, dtype=x.dtype)
    return torch.where(x >> 32 == 0, 0xFFFFFFFF, -1)


def _unless_by_zero(operation: Callable) -> Callable:
    def call(x: Tensor, y: Tensor) -> Tensor:
        result, zero = operation(x, y), y == 0
        return torch.where(zero, _by_zero(x), result) if zero.any() else result

    return call


def _shift(operation: Callable) -> Callable:
    """By the width or more: 0 or the sign, as PTX says; torch and numpy agree. PTX takes 32 bits of the amount."""
    return lambda x, by: operation(x, by & 0xFFFFFFFF if by.dtype == torch.int64 else by)


_INTEGERS: dict[str, Callable] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "sdiv": _sdiv,
    "srem": _unless_by_zero(lambda x, y: x - _sdiv(x, y) * y),  # with the sign of x
    "and": torch.bitwise_and, "or": torch.bitwise_or, "xor": torch.bitwise_xor,
    "shl": _shift(torch.bitwise_left_shift), "ashr": _shift(torch.bitwise_right_shift),
    "lshr": _shift(without_sign(np.right_shift)), "udiv": _unless_by_zero(without_sign(np.floor_divide)),
    "urem": _unless_by_zero(without_sign(np.remainder)), "umulhi": umulhi,
    "maxsi": torch.maximum, "minsi": torch.minimum, "maxui": without_sign(np.maximum),
    "minui": without_sign(np.minimum),
}  # fmt: skip
ELEMENTWISE: dict[str, Callable] = {name: _modulo_two(operation) for name, operation in _INTEGERS.items()}

# --- floating point ----------------------------------------------------------------------------------------


_sqrt = by_numpy(np.sqrt)  # torch's is a unit in the last place off where MKL computes it


def _extreme(operation: Callable, join: Callable, propagates: bool) -> Callable:
    """A maximum or minimum where +0 is greater than -0. torch gives either; `join` of their bits is the right one.

    Looking for zeros and NaN in the result costs little beside making it. torch.fmax is slower, and gives NaN for the
    NaNs that signal.
    """

    def call(x: Tensor, y: Tensor, *_) -> Tensor:
        result = operation(x, y)
        low, high = torch.aminmax(result)
        zeros = not (low > 0 or high < 0)
        if zeros:  # numpy looks four times as fast as torch, but knows no bfloat16
            zeros = (result == 0).any() if x.dtype.itemsize == 2 else np.count_nonzero(result.numpy()) < result.numel()
        if not zeros:
            pass
        elif join is torch.bitwise_and and y.numel() == 1 and not y.signbit():  # such as max(x, 0)
            result += 0.0  # -0 becomes +0
        else:
            result = torch.where((x == 0) & (y == 0), join(bits(x), bits(y)).view(x.dtype), result)
        if not propagates and low.isnan():
            result = torch.where(x.isnan(), y, torch.where(y.isnan(), x, result))
        return result

    return call


MAXIMUM = {
    "maxnumf": _extreme(torch.maximum, torch.bitwise_and, False),  # of a NaN and a number: the number
    "maximumf": _extreme(torch.maximum, torch.bitwise_and, True),  # of a NaN and a number: NaN
    "minnumf": _extreme(torch.minimum, torch.bitwise_or, False),
    "minimumf": _extreme(torch.minimum, torch.bitwise_or, True),
}


def _clampf(x: Tensor, low: Tensor, high: Tensor, nan: Enum) -> Tensor:
    most, least = ("maximumf", "minimumf") if nan.name == "ALL" else ("maxnumf", "minnumf")
    return MAXIMUM[least](MAXIMUM[most](x, low), high)


def _frem(x: Tensor, y: Tensor) -> Tensor:
    """x - trunc(x / y) * y, as NVIDIA's compiler writes it: not exact where the quotient has more digits than x."""
    return torch.where(y.isinf(), x, fma(-torch.trunc(x / y), y, x))


ELEMENTWISE |= MAXIMUM | CONVERSIONS
ELEMENTWISE |= {
    "iabs": torch.abs, "fadd": torch.add, "fsub": torch.sub, "fmul": torch.mul, "fneg": torch.neg, "fdiv": torch.div,
    "precise_divf": torch.div, "approx_divf": torch.div, "frem": _frem, "fma": fma, "clampf": _clampf,
    "exp": torch.exp, "exp2": torch.exp2, "log": torch.log,
    "log2": torch.log2, "sin": torch.sin, "cos": torch.cos, "sqrt": _sqrt, "precise_sqrt": _sqrt,
    "rsqrt": torch.rsqrt, "fabs": torch.abs, "floor": torch.floor, "ceil": torch.ceil, "erf": torch.erf,
}  # fmt: skip

# What an atomic operation leaves in memory, of (the old value, the new one). atom.add.f32 takes denormals in global
# memory for 0; this does not.
ATOMICS: dict[str, Callable] = {
    "ADD": ELEMENTWISE["add"], "FADD": torch.add, "AND": torch.bitwise_and, "OR": torch.bitwise_or,
    "XOR": torch.bitwise_xor, "MAX": torch.maximum, "MIN": torch.minimum, "UMAX": ELEMENTWISE["maxui"],
    "UMIN": ELEMENTWISE["minui"], "XCHG": lambda old, new: new,
}  # fmt: skip

# --- comparisons -------------------------------------------------------------------------------------------


def _compared(operation: Callable, opposite: bool = False) -> Callable:
    """Of float8 as float32: torch computes with no float8. opposite: where the operation is not true."""

    def call(x: Tensor, y: Tensor) -> Tensor:
        result = operation(x, y) if x.dtype.itemsize > 1 else operation(x.float(), y.float())
        return result.logical_not_() if opposite else result

    return call


_ORDERED = {"EQ": torch.eq, "GT": torch.gt, "GE": torch.ge, "LT": torch.lt, "LE": torch.le,
            "NE": lambda x, y: (x < y) | (x > y), "RD": lambda x, y: (x == x) & (y == y)}  # fmt: skip
_OPPOSITE = {"EQ": "NE", "NE": "EQ", "GT": "LE", "LE": "GT", "LT": "GE", "GE": "LT", "NO": "RD"}
ELEMENTWISE |= {f"fcmpO{how}": _compared(operation) for how, operation in _ORDERED.items()}
ELEMENTWISE |= {f"fcmpU{how}": _compared(_ORDERED[other], opposite=True) for how, other in _OPPOSITE.items()}
ELEMENTWISE |= {"fcmpUNE": _compared(torch.ne), "icmpEQ": torch.eq, "icmpNE": torch.ne}
ELEMENTWISE |= {f"icmpS{how}": _ORDERED[how] for how in ("GT", "GE", "LT", "LE")}
ELEMENTWISE |= {
    f"icmpU{how}": without_sign(operation)
    for how, operation in {"GT": np.greater, "GE": np.greater_equal, "LT": np.less, "LE": np.less_equal}.items()
}


def _select(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """`condition` may be a number where x and y are blocks."""
    return torch.where(condition.reshape(condition.shape + (1,) * (max(x.ndim, y.ndim) - condition.ndim)), x, y)


ELEMENTWISE["select"] = _select

# --- reductions --------------------------------------------------------------------------------------------


_COMMUTE = {"add", "mul", "and", "or", "xor", "maxsi", "minsi", "maxui", "minui", "fadd", "fmul", *MAXIMUM}
_AT_ONCE = {"fadd": torch.sum, "fmul": torch.prod}


def reduction(name: str) -> Callable[[Tensor, int], Tensor] | None:
    """A reduction (x, dim) -> tensor whose combine function is the one operation `name`, or None.

    x is written out along dim. Sums and products of floating point are made in an order of torch's: in blocks and
    pairs, whose error grows with the logarithm of the length, as on a card. Each of float16's and bfloat16's rounds.
    """
    return functools.partial(_reduced, name) if name in _COMMUTE else None


def _reduced(name: str, x: Tensor, dim: int) -> Tensor:
    if name in _AT_ONCE and x.dtype.itemsize > 2:
        return _AT_ONCE[name](x, dim)
    if name in MAXIMUM:
        result = torch.amax(x, dim) if name.startswith("max") else torch.amin(x, dim)
        if not ((result == 0) | result.isnan()).any():  # torch gives either zero, and NaN where one is there
            return result
    while (length := x.shape[dim]) > 1:
        half, rest = length // 2, x.narrow(dim, length - length % 2, length % 2)
        x = ELEMENTWISE[name](x.narrow(dim, 0, half), x.narrow(dim, half, half))
        x = torch.cat([x, rest], dim) if length % 2 else x
    return x.squeeze(dim)


# --- the rest ----------------------------------------------------------------------------------------------


def extern(symbol: str, args: list[Tensor], type: Type) -> Tensor:
    """A function of a vendor's mathematical library, by its symbol."""
    return libdevice.call(symbol, args, torch_dtype(type.scalar))


def histogram(x: Tensor, bins: int, mask: Tensor | None = None) -> Tensor:
    """x (P, N) of integers, written out -> (P, bins) int32. Counts modulo `bins`, as a card does."""
    if mask is not None:
        x, mask = torch.broadcast_tensors(x, mask)
    counts = torch.zeros(x.shape[0], bins, dtype=torch.int32)
    ones = torch.ones((), dtype=torch.int32).expand(x.shape) if mask is None else mask.to(torch.int32)
    return counts.scatter_add_(1, zero_extended(x) % bins, ones)


def gather(source: Tensor, index: Tensor, axis: int) -> Tensor:
    """Elements of source along the block's axis `axis`, at the places that index says. Places outside are wrapped."""
    dim = axis + 1
    shape = [max(m, n) for m, n in zip(source.shape, index.shape)]
    length = source.shape[dim]
    source = source.expand(*shape[:dim], length, *shape[dim + 1 :])
    index = index.expand(*shape[:dim], index.shape[dim], *shape[dim + 1 :]).long() % length
    if source.dtype.itemsize == 1:  # torch gathers no float8
        return torch.gather(bits(source), dim, index).view(source.dtype)
    return torch.gather(source, dim, index)


# Operations on blocks that are written out: of the operands, and the type of the result.
WHOLE: dict[str, Callable] = {
    "gather": lambda source, index, axis, type: gather(source, index, axis), "dot": dot, "dot_scaled": dot_scaled,
    "histogram": lambda x, bins, *mask_and_type: histogram(x, bins, *mask_and_type[:-1]),
}  # fmt: skip
