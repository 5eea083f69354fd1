"""Tensors for the judge and the box: names of dtypes, bytes, fill patterns, closeness. Imports torch only."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch


def dtype_name(dtype: torch.dtype) -> str:
    """The name of a dtype without torch's prefix, such as "float32"."""
    return str(dtype).removeprefix("torch.")


# By name, the dtypes that exercises and host functions may use.
DTYPES = {
    dtype_name(dtype): dtype
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
                  torch.int8, torch.uint64, torch.uint32, torch.uint16, torch.uint8, torch.bool)  # fmt: skip
}


def span(shape: Sequence[int], stride: Sequence[int]) -> int:
    """The number of elements from the first to the last one of a strided view, gaps included."""
    return 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True)) if math.prod(shape) else 0


def each_place(tensor: torch.Tensor, stride: Sequence[int] | None = None) -> torch.Tensor:
    """A view with one element for each place in memory: a dimension of stride 0 has length 1.

    stride: where those of another view of this shape count.
    """
    for axis, step in enumerate(tensor.stride() if stride is None else stride):
        tensor = tensor.narrow(axis, 0, 1) if step == 0 and tensor.shape[axis] else tensor
    return tensor


def to_bytes(tensor: torch.Tensor) -> bytes:
    """The elements of a tensor in row-major order, as bytes."""
    flat = tensor.detach().to("cpu").contiguous()
    flat = flat.as_strided((flat.numel(),), (1,))  # one element may have any stride, and is contiguous
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def from_bytes(raw: bytes | memoryview, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    """The contiguous tensor whose elements are these bytes. It owns a copy of them."""
    if not len(raw):
        return torch.empty(tuple(shape), dtype=dtype)
    return torch.frombuffer(bytearray(raw), dtype=dtype).reshape(tuple(shape))


# Both tables have one pattern for each size of an element, in bytes.
# A NaN that no computation produces. An element that still holds it was never written.
UNWRITTEN = {1: 0xA5 - 256, 2: 0x7FA5, 4: 0x7FA5A5A5, 8: 0x7FF5A5A5A5A5A5A5}
# A large number, for a second run: a maximum may ignore a NaN.
LARGE = {1: 0x49, 2: 0x7149, 4: 0x7149F2CA, 8: 0x4629B8C91F2D3A5B}
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory, viewed as integers."""
    return tensor.view(_INTEGERS[tensor.element_size()])


def is_poison(tensor: torch.Tensor) -> torch.Tensor:
    """True for each element of a contiguous tensor that still holds the pattern UNWRITTEN."""
    return bits(tensor) == UNWRITTEN[tensor.element_size()]


def storage_of(tensor: torch.Tensor) -> int:
    """The identity of a tensor's storage, which its views share."""
    return tensor.untyped_storage()._cdata


def poison(tensor: torch.Tensor, pattern: dict[int, int] = UNWRITTEN) -> torch.Tensor:
    """Fills the whole storage of a fresh tensor with the pattern. Returns the tensor."""
    if tensor.numel():
        whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())
        bits(whole).fill_(pattern[tensor.element_size()])
    return tensor


def seeded(seed: int, at: torch.Tensor, dtype: torch.dtype, span: tuple[float, float] | None = (-4, 4)) -> torch.Tensor:
    """Elements of a tensor that is too large to hold: numbers that follow from a seed and their places.

    span: the lowest number, and the end, which is not among them. Integers and bool have all numbers between. None:
    each number is its place.

    at: int64, of any shape. The mixing is that of splitmix64, https://prng.di.unimi.it/splitmix64.c.
    """
    if span is None:
        return at.to(dtype)
    x = at + (seed * 0x9E3779B9 & 0x7FFFFFFFFFFF)
    x *= -7046029254386353131
    x ^= x >> 30 & 0x3FFFFFFFF
    x *= -4658895280553007687
    x ^= x >> 27 & 0x1FFFFFFFFF
    x *= -7723592293110705685
    low, end = span
    if not dtype.is_floating_point:
        return (low + (x >> 33 & 0x7FFFFFFF) % (end - low)).to(dtype)
    return ((x >> 33 & 0xFFFF).float() * ((end - low) / (1 << 16)) + low).to(dtype)


def close(got: torch.Tensor, expected: torch.Tensor, relative: float, absolute: float) -> torch.Tensor:
    """Elementwise agreement of float64. NaN agrees with NaN, an infinity with the same infinity.

    torch.isclose with equal_nan does the same, and looks for NaN where everything is near.
    """
    error = (got - expected).abs_()
    near = (error <= expected.abs().mul_(relative).add_(absolute)) & (error < math.inf)
    return near if bool(near.all()) else near | (got == expected) | ((got != got) & (expected != expected))
