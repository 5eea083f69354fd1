"""How numbers are written in bits, and conversions between these formats, as a GPU does them.

Comments that say "a card" mean what an H200 gave (benchmarks/recorded/h200_operations.md).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .program import Enum, Type

DTYPES = {
    "i1": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
    "f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2, "f8E4M3FNUZ": torch.float8_e4m3fnuz,
    "f8E5M2FNUZ": torch.float8_e5m2fnuz, "f8E4M3B11FNUZ": torch.uint8,
}  # fmt: skip
SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
TORCH_UNSIGNED = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
# Conversions to float8 give the largest number where others give infinity (PTX: satfinite).
LARGEST = {torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0, torch.float8_e4m3fnuz: 240.0,
           torch.float8_e5m2fnuz: 57344.0}  # fmt: skip


def torch_dtype(type: Type) -> torch.dtype:
    """The dtype of a number of this type. Pointers are addresses."""
    return torch.int64 if type.kind == "pointer" else DTYPES[type.name]


def constant(method: str, args: tuple, type: Type) -> Tensor:
    """What the builder's `method` makes, such as get_int32(7): a tensor of shape (1,) * (1 + rank)."""
    dtype, shape = torch_dtype(type.scalar), (1,) * (1 + len(type.shape))
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
    return x.numpy().view(UNSIGNED[x.dtype.itemsize])


def cut(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Integers as narrower ones: the low bits."""
    return x.bitwise_and(1).bool() if dtype == torch.bool else x.to(dtype)


def zero_extended(x: Tensor) -> Tensor:
    """Integers of at most 32 bits without sign, as int64; int64 as it is."""
    return x.long() if x.dtype in (torch.bool, torch.int64) else x.view(TORCH_UNSIGNED[x.dtype.itemsize]).long()


# --- between floating point formats ------------------------------------------------------------------------


def narrowed(x: Tensor, dtype: torch.dtype, toward_zero: bool = False) -> Tensor:
    """Floating point as a dtype of no more bits, rounded once: to nearest, ties to even, or toward zero."""
    if x.dtype == torch.float64 and dtype.itemsize < 4:
        # torch goes by float32 and rounds twice. Rounded to odd there, the second rounding gives what one gives.
        single = narrowed(x, torch.float32, toward_zero=True)
        x = (bits(single) | (single != x)).view(torch.float32)
    if dtype in LARGEST and not toward_zero:
        x = x.clamp(-LARGEST[dtype], LARGEST[dtype])
    result = x.to(dtype)
    if toward_zero:
        result = (bits(result) - (result.to(x.dtype).abs() > x.abs()).to(SIGNED[dtype.itemsize])).view(dtype)
    return result


def converted(x: Tensor, type: Type, mode: Enum | None = None) -> Tensor:
    """fp_to_fp, fp_ext, fp_trunc."""
    dtype = torch_dtype(type.scalar)
    if dtype.itemsize > x.dtype.itemsize:
        return x.to(dtype)
    return narrowed(x, dtype, mode is not None and mode.name == "RTZ")


def tf32(x: Tensor) -> Tensor:
    """float32 with 10 bits after the point: a card's tensor cores leave the other 13 out, and nothing rounds before."""
    return torch.where(x.isnan(), x, (bits(x) & ~0x1FFF).view(torch.float32))


# --- between integers and floating point -------------------------------------------------------------------


def from_signed(x: Tensor, type: Type) -> Tensor:
    """si_to_fp, rounded once."""
    return _from_integers(-x.to(torch.int8) if x.dtype == torch.bool else x, torch_dtype(type.scalar))


def from_unsigned(x: Tensor, type: Type) -> Tensor:
    """ui_to_fp, rounded once."""
    dtype = torch_dtype(type.scalar)
    if dtype.itemsize >= 4 and x.dtype != torch.bool:
        return x.view(TORCH_UNSIGNED[x.dtype.itemsize]).to(dtype)
    if x.dtype != torch.int64:
        return _from_integers(zero_extended(x), dtype)
    halved = (x >> 1 & torch.iinfo(torch.int64).max) | (x & 1)
    return torch.where(x < 0, _from_integers(halved, dtype) * 2, _from_integers(x, dtype))


def _from_integers(x: Tensor, dtype: torch.dtype) -> Tensor:
    if dtype != torch.bfloat16 or x.dtype.itemsize < 4:
        return x.to(dtype)  # float16 as well: where float32 would have to round, float16 is infinite
    if x.dtype == torch.int64:  # the low bits into one, so that float64 holds it
        x = torch.where(x.abs() >> 53 != 0, (x & ~0xFFF) | ((x & 0xFFF) != 0).long() << 11, x)
    return narrowed(x.double(), dtype)


def to_signed(x: Tensor, type: Type) -> Tensor:
    """fp_to_si. To i8: by i16, as the card does, so that 300 is 44."""
    dtype = torch_dtype(type.scalar)
    return saturated(x, torch.int16).to(dtype) if dtype == torch.int8 else saturated(x, dtype)


def to_unsigned(x: Tensor, type: Type) -> Tensor:
    """fp_to_ui. To i8: by u16."""
    dtype = torch_dtype(type.scalar)
    return saturated_unsigned(x, torch.int16).to(dtype) if dtype == torch.int8 else saturated_unsigned(x, dtype)


def saturated(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Floating point toward zero to integers; what is too large as the largest of them (PTX: cvt.rzi)."""
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    low, high = torch.aminmax(x)
    if low >= least and high < -float(least):
        return x.to(dtype)
    exact = x.double()
    inside = torch.where((exact >= least) & (exact < -float(least)), exact, 0).to(dtype)
    result = torch.where(exact < least, least, torch.where(exact >= -float(least), most, inside))
    return torch.where(exact.isnan(), _of_nan(x, dtype), result)


def saturated_unsigned(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The same to integers without sign; what is below 0 is 0."""
    width = 8 * dtype.itemsize
    exact = x.double()
    inside = torch.where((exact > -1) & (exact < 2.0**width), exact, 0)
    if width == 64:
        upper = inside >= 2.0**63
        result = torch.where(upper, inside - 2.0**63, inside).long() ^ torch.where(upper, torch.iinfo(dtype).min, 0)
    else:
        result = inside.long().to(dtype)
    result = torch.where(exact >= 2.0**width, -1, result)
    return torch.where(exact.isnan(), _of_nan(x, dtype), result)


def _of_nan(x: Tensor, dtype: torch.dtype) -> int:
    """NaN as an integer: 0, or the highest bit alone where float64 or 64 bits take part (PTX: cvt)."""
    return torch.iinfo(dtype).min if torch.float64 == x.dtype or dtype == torch.int64 else 0


def integer_cast(x: Tensor, type: Type, signed: bool) -> Tensor:
    """int_cast: the low bits, or more bits: copies of the sign, or 0."""
    dtype = torch_dtype(type.scalar)
    if dtype == torch.bool:
        return cut(x, dtype)
    if x.dtype == torch.bool:
        return -x.to(dtype) if signed else x.to(dtype)
    if signed or dtype.itemsize <= x.dtype.itemsize:
        return x.to(dtype)
    return zero_extended(x).to(dtype)


def bitcast(x: Tensor, type: Type) -> Tensor:
    return x.view(torch_dtype(type.scalar))
