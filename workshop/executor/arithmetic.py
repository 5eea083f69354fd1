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

from .program import Enum, Type

# --- formats: how numbers are written in bits --------------------------------------------------------------

SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
UNSIGNED = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}


def constant(method: str, args: tuple, type: Type) -> Tensor:
    """What the builder's `method` makes, such as get_int32(7): a tensor of shape (1,) * (1 + rank)."""
    dtype, shape = type.dtype, (1,) * (1 + len(type.shape))
    value = {"get_null_value": 0, "get_all_ones_value": -1}.get(method, args[0])
    if type.scalar.kind != "float":
        value &= 2**64 - 1
        return cut(torch.tensor(value - 2**64 if value >> 63 else value), dtype).reshape(shape)
    number = torch.tensor(value, dtype=torch.float64)
    return (number if dtype.itemsize == 8 else number.float().to(dtype)).reshape(shape)  # Triton's goes by float32, too


def bits(x: Tensor) -> Tensor:
    """The same bits as signed integers."""
    return x.view(SIGNED[x.dtype.itemsize])


def unsigned(x: Tensor) -> np.ndarray:
    """The same bits as unsigned integers. torch has almost no operations for these; numpy has."""
    return x.numpy().view(f"u{x.dtype.itemsize}")


def without_sign(operation: Callable) -> Callable:
    """numpy's `operation` of unsigned integers."""

    def call(x: Tensor, y: Tensor) -> Tensor:
        with np.errstate(all="ignore"):
            result = operation(unsigned(x), unsigned(y))
        return torch.from_numpy(result if result.dtype == np.bool_ else result.view(f"i{result.itemsize}"))

    return call


def by_numpy(operation: Callable, count: int = 1) -> Callable:
    """numpy's operation of `count` arguments, where torch's is not exact, or is not there."""

    def call(*args: Tensor | float) -> Tensor:
        if len(args) != count:  # numpy would write into one more
            raise TypeError(f"{len(args)} arguments, not {count}")
        with np.errstate(all="ignore"):
            return torch.from_numpy(np.asarray(operation(*(x.numpy() if isinstance(x, Tensor) else x for x in args))))

    return call


@functools.cache
def by_c(name: str, count: int = 1) -> Callable:
    """The C library's function of so many float64, number by number: where torch and numpy have none."""
    function = getattr(ctypes.CDLL(None), name)
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * count
    return by_numpy(np.vectorize(function, otypes=[np.float64]), count)


def cut(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Integers as narrower ones: the low bits."""
    return x.bitwise_and(1).bool() if dtype == torch.bool else x.to(dtype)


def zero_extended(x: Tensor) -> Tensor:
    """Integers of at most 32 bits without sign, as int64; int64 as it is."""
    return x.long() if x.dtype in (torch.bool, torch.int64) else x.view(UNSIGNED[x.dtype.itemsize]).long()


# --- between floating point formats ------------------------------------------------------------------------


def odd_sum(x: Tensor, y: Tensor) -> Tensor:
    """x + y in float64, rounded to odd: rounding it again to a narrower dtype gives what one rounding gives."""
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)  # exactly
    inexact = (error != 0) & total.isfinite() & ((bits(total) & 1) == 0)
    outward = (error > 0) == (total > 0)
    return torch.where(inexact, bits(total) + torch.where(outward, 1, -1), bits(total)).view(torch.float64)


def narrowed(x: Tensor, dtype: torch.dtype, toward_zero: bool = False) -> Tensor:
    """Floating point as a dtype of no more bits, rounded once: to nearest, ties to even, or toward zero."""
    if x.dtype == torch.float64 and dtype.itemsize < 4:
        # torch goes by float32 and rounds twice. Rounded to odd there, the second rounding gives what one gives.
        single = narrowed(x, torch.float32, toward_zero=True)
        x = (bits(single) | (single != x)).view(torch.float32)
    if dtype.is_floating_point and dtype.itemsize == 1 and not toward_zero:
        x = x.clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max)  # others give infinity (PTX: satfinite)
    result = x.to(dtype)
    if toward_zero:
        result = (bits(result) - (result.to(x.dtype).abs() > x.abs()).to(SIGNED[dtype.itemsize])).view(dtype)
    return result


def tf32(x: Tensor) -> Tensor:
    """float32 with 10 bits after the point: a card's tensor cores leave the other 13 out, and nothing rounds before."""
    return torch.where(x.isnan(), x, (bits(x) & ~0x1FFF).view(torch.float32))


def product_of_a_dot(times: int, x: Tensor, y: Tensor) -> Tensor:
    """One of the products that tl.dot adds, with TF32; so often."""
    return tf32(x) * tf32(y) * times


def _float(x: Tensor, dtype: torch.dtype, mode=None) -> Tensor:
    """fp_to_fp, fp_ext, fp_trunc. mode: of program.Enum, or None."""
    wider = dtype.itemsize > x.dtype.itemsize
    return x.to(dtype) if wider else narrowed(x, dtype, mode is not None and mode.name == "RTZ")


# --- between integers and floating point -------------------------------------------------------------------


def _from_integers(signed: bool) -> Callable:
    """Rounded once. To float16 as well: where float32 would have to round, float16 is infinite."""

    def convert(x: Tensor, dtype: torch.dtype) -> Tensor:
        if x.dtype == torch.bool:
            x = -x.to(torch.int8) if signed else x.to(torch.int8)
        if dtype != torch.bfloat16 or x.dtype.itemsize < 4:
            return (x if signed else x.view(UNSIGNED[x.dtype.itemsize])).to(dtype)
        if x.dtype == torch.int32:
            return narrowed((x if signed else zero_extended(x)).double(), dtype)
        high = x >> 32 if signed else x >> 32 & 0xFFFFFFFF
        return narrowed(odd_sum(high.double() * 2.0**32, (x & 0xFFFFFFFF).double()), dtype)

    return convert


def saturated(x: Tensor, dtype: torch.dtype, signed: bool = True) -> Tensor:
    """Floating point toward zero to integers; what is too large as the largest of them (PTX: cvt.rzi).

    NaN is 0, or the highest bit alone where float64 or 64 bits take part (PTX: cvt).
    """
    kind = np.dtype(f"{'i' if signed else 'u'}{dtype.itemsize}")
    least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    above = 2.0 * (most // 2 + 1)
    if signed:
        low, high = torch.aminmax(x)
        if low >= least and high < above:
            return x.to(dtype)
    of_nan = torch.iinfo(dtype).min if torch.float64 == x.dtype or dtype == torch.int64 else 0
    values = x.double().numpy()
    inside = np.where((values > least - 1) & (values < above), values, 0).astype(kind)
    found = np.where(values >= above, np.array(most, kind), np.where(values <= least, np.array(least, kind), inside))
    return torch.where(x.isnan(), of_nan, torch.from_numpy(found.view(f"i{dtype.itemsize}")))


def _to_integers(signed: bool) -> Callable:
    """To i8 by 16 bits, as a card does, so that 300 is 44."""
    return lambda x, dtype: saturated(x, torch.int16 if dtype == torch.int8 else dtype, signed).to(dtype)


def _integer_cast(x: Tensor, dtype: torch.dtype, signed: bool) -> Tensor:
    """The low bits, or more bits: copies of the sign, or 0."""
    if dtype == torch.bool:
        return cut(x, dtype)
    if x.dtype == torch.bool:
        return -x.to(dtype) if signed else x.to(dtype)
    return x.to(dtype) if signed or dtype.itemsize <= x.dtype.itemsize else zero_extended(x).to(dtype)


def _typed(convert: Callable) -> Callable:
    """Operations of a Program get a type where the functions of this module get a dtype."""
    return lambda x, type, *more: convert(x, type.dtype, *more)


CONVERSIONS: dict[str, Callable] = {name: _typed(convert) for name, convert in {
    "fp_to_fp": _float, "fp_ext": _float, "fp_trunc": _float, "si_to_fp": _from_integers(True),
    "ui_to_fp": _from_integers(False),
    "fp_to_si": _to_integers(True), "fp_to_ui": _to_integers(False), "int_cast": _integer_cast,
    "bitcast": Tensor.view, "ptr_to_int": Tensor.view, "int_to_ptr": Tensor.view,
}.items()}  # fmt: skip

# --- products of numbers -----------------------------------------------------------------------------------


def fma(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """x * y + z, rounded once."""
    if x.dtype == torch.float64:
        return by_c("fma", 3)(x, y, z)
    return narrowed(odd_fma(x, y, z), x.dtype)


def odd_fma(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """x * y + z of float32 or narrower, as float64 rounded to odd."""
    return odd_sum(x.double() * y.double(), z.double())


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

# What an atomic operation leaves in memory, of the old value and its operands. atom.add.f32 takes denormals in global
# memory for 0; this does not.
ATOMICS: dict[str, Callable] = {
    "ADD": ELEMENTWISE["add"], "FADD": torch.add, "AND": torch.bitwise_and, "OR": torch.bitwise_or,
    "XOR": torch.bitwise_xor, "MAX": torch.maximum, "MIN": torch.minimum, "UMAX": ELEMENTWISE["maxui"],
    "UMIN": ELEMENTWISE["minui"], "XCHG": lambda old, new: new, "LOAD": lambda old: old,
    "CAS": lambda old, wanted, new: torch.where(equal(old, wanted), new, old),
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


def equal(x: Tensor, y: Tensor) -> Tensor:
    """Which elements are the same; a NaN is the same as another."""
    return (x == y) | (x != x) & (y != y) if x.is_floating_point() else x == y


def _select(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """`condition` may be a number where x and y are blocks."""
    return torch.where(condition.reshape(condition.shape + (1,) * (max(x.ndim, y.ndim) - condition.ndim)), x, y)


ELEMENTWISE["select"] = _select

# --- reductions --------------------------------------------------------------------------------------------


_COMMUTE = {"add", "mul", "and", "or", "xor", "maxsi", "minsi", "maxui", "minui", "fadd", "fmul", *MAXIMUM}
_AT_ONCE = {"fadd": torch.sum, "fmul": torch.prod}


def reduced(name: str, x: Tensor, dim: int) -> Tensor | None:
    """x without dim, whose elements the one operation `name` combines; None if its order matters.

    x is written out along dim. Sums and products of floating point are made in an order of torch's: in blocks and
    pairs, whose error grows with the logarithm of the length, as on a card. Each of float16's and bfloat16's rounds.
    """
    if name not in _COMMUTE:
        return None
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
    """a (P, [B,] M, K) times b (P, [B,] K, N), plus c (P, [B,] M, N).

    Products are exact and summed in float32, or float64 for float64; integers modulo 2**32. An accumulator of float16
    is rounded after each STEP products, as a matrix unit does. A card sums them in another order and cuts off low bits,
    more of them for float8 with `max_imprecise`: it is less exact. 3xTF32, BF16x3 and BF16x6 split float32 so that
    little is lost; here nothing is.
    """
    dtype = out_type.dtype
    if not a.is_floating_point():
        product = torch.matmul(a.double(), b.double())  # exact: its size is below K * 2**14
        return (product.long() + c.long()).to(dtype)
    if a.dtype == torch.float64:
        return torch.matmul(a, b) + c
    if a.dtype == torch.float32 and input_precision.name == "TF32":
        a, b = tf32(a), tf32(b)
    steps = a.shape[-1] if dtype == torch.float32 else STEP
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
    depth = a.shape[-1]
    a, b = a * _scale(a_scale, depth), b * _scale(b_scale, depth).transpose(-1, -2)
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
    factor = (scale if scale.is_floating_point() else scale.view(torch.float8_e8m0fnu)).float()
    return factor if factor.shape[-1] == 1 else factor.repeat_interleave(depth // factor.shape[-1], -1)


# --- the rest ----------------------------------------------------------------------------------------------


def histogram(x: Tensor, bins: int, mask: Tensor | None, type: Type) -> Tensor:
    """x (P, N) of integers -> (P, bins) int32. Counts modulo `bins`, as a card does."""
    x, mask = torch.broadcast_tensors(x, torch.ones(()) if mask is None else mask)
    counts = torch.zeros(x.shape[0], bins, dtype=type.dtype)
    return counts.scatter_add_(1, zero_extended(x) % bins, mask.to(type.dtype))


def gather(source: Tensor, index: Tensor, axis: int, type: Type) -> Tensor:
    """Elements of source along the block's axis `axis`, at the places that index says. Places outside are wrapped."""
    count, dim = max(len(source), len(index)), axis + 1
    source = source.expand(count, *source.shape[1:])
    index = index.expand(count, *index.shape[1:]).long() % source.shape[dim]
    if source.dtype.itemsize == 1:  # torch gathers no float8
        return torch.gather(bits(source), dim, index).view(source.dtype)
    return torch.gather(source, dim, index)


# Operations on blocks that are written out: of the operands, and the type of the result.
WHOLE: dict[str, Callable] = {"gather": gather, "dot": dot, "dot_scaled": dot_scaled, "histogram": histogram}


# -- NaN that knows its line ---------------------------------------------------------------------------------
# A NaN has bits to spare, and most operations hand them on. So a NaN in a result can say where it came from.

# By dtype: a NaN, and the place of the line in it. A conversion to float16 keeps these bits, and not those below.
_NAN = {torch.float32: (torch.int32, 0x7FC00000, 13), torch.float16: (torch.int16, 0x7E00, 0)}
_LINES = 256
CAUSES = ("", "fsub", "fadd", "fmul", "fdiv", "fdiv by 0", "dot")


def marked(found: Tensor, given: list, line: int, name: str) -> Tensor:
    """The result of the operation `name`: NaN that none of its operands has gets the number of the line, and of the
    operation in CAUSES."""
    if found.dtype not in _NAN or not 0 < line < _LINES or not (fresh := found.isnan()).any():
        return found
    elementwise = name not in WHOLE
    for each in given:
        if isinstance(each, Tensor) and each.is_floating_point():
            before = each.isnan()
            fits = before.ndim == fresh.ndim and all(n in (1, m) for n, m in zip(before.shape, fresh.shape))
            fresh = fresh & ~(before if elementwise and fits else before.any())
    bits_of, nan, place = _NAN[found.dtype]
    name += " by 0" * (name == "fdiv" and bool((fresh & (given[1] == 0)).any()))
    cause = CAUSES.index(name) if place and name in CAUSES else 0
    return torch.where(fresh, torch.tensor(nan | line << place | cause, dtype=bits_of).view(found.dtype), found)


def origins_of(values: Tensor) -> list[tuple[int, str]]:
    """The lines and operations (of CAUSES) that NaN among some values came from, as far as they are known, for each."""
    if values.dtype not in _NAN:
        return []
    bits_of, nan, place = _NAN[values.dtype]
    spare = (values[values.isnan()].contiguous().view(bits_of).long() & (1 << 8 * bits_of.itemsize - 1) - 1) - nan
    lines, causes = spare >> place, spare & (1 << place) - 1
    known = (causes < len(CAUSES)) & (lines > 0) & (lines < _LINES)
    return [(line, CAUSES[cause]) for line, cause in zip(lines[known].tolist(), causes[known].tolist())]
