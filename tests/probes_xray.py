"""Kernels that the tests of xray and occupancy compile."""

import triton
import triton.language as tl

SCALE = tl.constexpr(2.0)
WIDE = tl.constexpr(4)
HALF = tl.float16


@triton.jit
def twice(x):
    return x * SCALE


@triton.jit
def scaled_copy(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    tl.store(out_ptr + offsets, twice(tl.load(x_ptr + offsets, mask=mask)) + WIDE, mask=mask)


@triton.jit
def row_sum(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.arange(0, BLOCK_SIZE)
    row = tl.load(x_ptr + tl.program_id(0) * n + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(row, axis=0))


@triton.jit
def held_rows(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.arange(0, BLOCK_SIZE)
    row = tl.load(x_ptr + tl.program_id(0) * n + offsets, mask=offsets < n, other=-float("inf"))
    numerator = tl.exp(row - tl.max(row, axis=0))
    tl.store(
        out_ptr + tl.program_id(0) * n + offsets, numerator / tl.sum(numerator, axis=0), mask=offsets < n
    )


@triton.jit
def misspelt(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.arange(0, BLOCK_SIZE)
    row = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, tl.softmaks(row))


@triton.jit
def not_a_power_of_two(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.arange(0, 100)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def converted_copy(x_ptr, out_ptr, T: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets).to(T).to(HALF))
