"""Products: rounded once with what is added to them, upper halves, and of matrices.

All are for all programs of a launch at once.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from .formats import bits, by_numpy, narrowed, odd_sum, tf32, torch_dtype, without_sign, zero_extended
from .program import Enum, Type

# --- of numbers --------------------------------------------------------------------------------------------


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

# --- of matrices -------------------------------------------------------------------------------------------


STEP = 16  # of k, in one instruction: mma.m16n8k16, wgmma.k16, mfma_16x16x16


def dot(a: Tensor, b: Tensor, c: Tensor, input_precision: Enum, max_imprecise: int, out_type: Type) -> Tensor:
    """a (P, [B,] M, K) times b (P, [B,] K, N), plus c (P, [B,] M, N). K must be written out in a or in b.

    Products are exact and summed in float32, or float64 for float64; integers modulo 2**32. An accumulator of float16
    is rounded after each STEP products, as a matrix unit does. A card sums them in another order and cuts off low bits,
    more of them for float8 with `max_imprecise`: it is less exact. 3xTF32, BF16x3 and BF16x6 split float32 so that
    little is lost; here nothing is.
    """
    dtype = torch_dtype(out_type.scalar)
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
    return (torch.matmul(a, b) + c.float()).to(torch_dtype(out_type.scalar))


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
