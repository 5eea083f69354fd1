"""The operations of a Program on numbers, in torch: what a GPU computes, for all programs of a launch at once.

A value is a tensor with a leading axis for the programs, then the axes of the block. Any axis may have length 1 where
the block's is longer: it then stands for equal elements. A number (no block) has the leading axis only.

The arithmetic is that of a GPU. Integers wrap around, and carry no sign: u32 is the bits of int32. Denormals stay.
Each operation rounds once to its dtype. Which NaN it is, is not kept. What agrees with a card bit for bit, and what is
bounded, is in benchmarks/recorded/h200_operations.md. Comments that say "a card" mean what an H200 gave there.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from .formats import (
    CONVERSIONS,
    bits,
    by_numpy,
    narrowed,
    odd_sum,
    tf32,
    without_sign,
    zero_extended,
)  # fmt: skip
from .program import Enum, Type

# --- products of numbers -----------------------------------------------------------------------------------


def fma(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """x * y + z, rounded once."""
    if x.dtype == torch.float64:
        return _fma64()(x, y, z)
    total = (x.double() * y.double()).add_(z)
    # float64 has rounded as well. That matters only where it gives a tie, or where the result is a denormal.
    fraction = {torch.float16: 42, torch.bfloat16: 45, torch.float32: 29}[x.dtype]
    doubtful = (bits(total) & (1 << fraction) - 1) == 1 << fraction - 1
    doubtful |= (total != 0) & (total.abs() < 2 * torch.finfo(x.dtype).tiny)
    if doubtful.any():
        where = doubtful.nonzero(as_tuple=True)
        total[where] = odd_fma(*(each.expand(total.shape)[where] for each in (x, y, z)))
    return narrowed(total, x.dtype)


def odd_fma(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """x * y + z of float32 or narrower, as float64 rounded to odd."""
    return odd_sum(x.double() * y.double(), z.double())


@functools.cache
def _fma64() -> Callable:
    """That of the C library, number by number: torch and numpy have none."""
    function = ctypes.CDLL(None).fma
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    return by_numpy(np.vectorize(function, otypes=[np.float64]), 3)


def _umulhi(x, y):
    """The upper half of the product of integers of 32 or 64 bits."""
    if x.dtype == np.uint32:
        wide = np.multiply(x, y, dtype=np.uint64)
        return np.right_shift(wide, np.uint64(32), out=wide).astype(np.uint32)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    xl, xh, yl, yh = x & low, x >> half, y & low, y >> half
    middle = xh * yl + (xl * yl >> half)
    return xh * yh + (middle >> half) + ((middle & low) + xl * yh >> half)


umulhi = without_sign(_umulhi)

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


# --- products of matrices ----------------------------------------------------------------------------------

STEP = 16  # of k, in one instruction: mma.m16n8k16, wgmma.k16, mfma_16x16x16


def dot(a: Tensor, b: Tensor, c: Tensor, input_precision: Enum, max_imprecise: int, out_type: Type) -> Tensor:
    """a (P, [B,] M, K) times b (P, [B,] K, N), plus c (P, [B,] M, N). K must be written out in a or in b.

    Products are exact and summed in float32, or float64 for float64; integers modulo 2**32. An accumulator of float16
    is rounded after each STEP products, as a matrix unit does. A card sums them in another order and cuts off low bits,
    more of them for float8 with `max_imprecise`: it is less exact. 3xTF32, BF16x3 and BF16x6 split float32 so that
    little is lost; here nothing is.
    """
    dtype = out_type.dtype
    depth = max(a.shape[-1], b.shape[-2])
    a = a.expand(*a.shape[:-1], depth)
    b = b.expand(*b.shape[:-2], depth, b.shape[-1])
    if not a.is_floating_point():
        product = torch.matmul(a.double(), b.double())  # exact: its size is below K * 2**14
        return (product.long() + c.long()).to(dtype)
    if a.dtype == torch.float64:
        return torch.matmul(a, b) + c
    if a.dtype == torch.float32 and input_precision.name == "TF32":
        a, b = tf32(a), tf32(b)
    steps = depth if dtype == torch.float32 else STEP
    for x, y in zip(a.float().split(steps, -1), b.float().split(steps, -2)):
        c = (torch.matmul(x, y) + c.float()).to(dtype)
    return c


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def dot_scaled(a, a_scale, a_kind, b, b_scale, b_kind, fast_math, a_k_pack, b_k_pack, c, out_type) -> Tensor:
    """a times b plus c, where scales (P, [B,] M, K/32) and (P, [B,] N, K/32) belong to the rows of a and columns of b.

    The kinds are E2M1 (two in a byte, the low half first; along K, or not), E4M3, E5M2, BF16 and FP16. A scale is an
    exponent: 2**(s - 127), NaN for 255; of float8 it is that number.
    """
    a, b = _unpacked(a, a_kind.name, -1 if a_k_pack else -2), _unpacked(b, b_kind.name, -2 if b_k_pack else -1)
    depth = max(a.shape[-1], b.shape[-2])
    a = a.expand(*a.shape[:-1], depth) * _scale(a_scale, depth)
    b = b.expand(*b.shape[:-2], depth, b.shape[-1]) * _scale(b_scale, depth).transpose(-1, -2)
    return (torch.matmul(a, b) + c.float()).to(out_type.dtype)


def _unpacked(x: Tensor, kind: str, axis: int) -> Tensor:
    """Numbers of the format `kind` as float32."""
    if kind != "E2M1":
        return x.float()
    pairs = torch.stack([x & 15, x >> 4 & 15], axis)  # (..., 2) or (..., 2, N): behind the axis that they belong to
    return E2M1[pairs.long()].flatten(axis - 1, axis)


def _scale(scale: Tensor | None, depth: int) -> Tensor:
    """(..., rows, K) factors from (..., rows, groups)."""
    if scale is None:
        return torch.ones(1, 1)
    if scale.is_floating_point():
        factor = scale.float()
    else:
        exponent = zero_extended(scale)
        power = (exponent - 127 + 1023 << 52).view(torch.float64).float()  # 2**-127 is a denormal of float32
        factor = torch.where(exponent == 255, float("nan"), power)
    return factor if factor.shape[-1] == 1 else factor.repeat_interleave(depth // factor.shape[-1], -1)


# --- the rest ----------------------------------------------------------------------------------------------


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
