"""How numbers are written in bits, and conversions between these formats, as a GPU does them.

Comments that say "a card" mean what an H200 gave (benchmarks/recorded/h200_operations.md).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from .program import Type

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
