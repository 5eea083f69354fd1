"""Leaky ReLU and dropout in one pass, forward and backward.

The mask is drawn from a counter-based generator (Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy
as 1, 2, 3", 2011), so it needs no memory: the backward pass draws it again. One call of Philox makes four numbers.
`tl.rand` keeps one of them, `tl.rand4x` keeps all four.

The number of elements is a constexpr. A mask can only go with a load of 16 bytes if the compiler knows that the number
is a multiple of 4. Triton's own launcher says so; jax_triton passes a plain number. JAX compiles per shape anyway.
"""

import triton
import triton.language as tl

# Both passes cut the elements in the same way, because the mask depends on it. Blocks are small, and many programs
# run at once: within a program a load waits for the store before it, since the compiler cannot know that they differ.
QUARTER = 256
# Warps, by Triton's backend. "cuda": the best of sweep.py on one H200. "hip": 4 numbers, 16 bytes, per thread; no AMD
# card has run it.
FORWARD_WARPS = {"cuda": 2, "hip": 1}
BACKWARD_WARPS = {"cuda": 4, "hip": 1}


@triton.jit
def leaky_dropout_part(x_ptr, y_ptr, offsets, n, u, p):
    """y = leaky(x) / (1 - p) where u >= p, else 0, for the elements at `offsets`. u: their random numbers."""
    scale = 1 / (1 - p)  # one division; infinite for p = 1, where nothing is kept
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    x = tl.where(x >= 0, x, 0.01 * x)
    tl.store(y_ptr + offsets, tl.where(u >= p, x * scale, 0.0), mask=offsets < n)


@triton.jit
def leaky_dropout_kernel(x_ptr, p_ptr, seed_ptr, y_ptr, n: tl.constexpr, QUARTER: tl.constexpr):
    """x: (n,), p: float32 (1,), seed: int32 (1,) to y: (n,). A program has four blocks of QUARTER elements.

    Number k of a counter belongs to block k, so that each block is loaded and stored in the widest pieces.
    """
    start = tl.program_id(0).to(tl.int64) * (4 * QUARTER)
    lanes = tl.arange(0, QUARTER)
    p = tl.load(p_ptr)
    u0, u1, u2, u3 = tl.rand4x(tl.load(seed_ptr), tl.program_id(0) * QUARTER + lanes)
    leaky_dropout_part(x_ptr, y_ptr, start + lanes, n, u0, p)
    leaky_dropout_part(x_ptr, y_ptr, start + QUARTER + lanes, n, u1, p)
    leaky_dropout_part(x_ptr, y_ptr, start + 2 * QUARTER + lanes, n, u2, p)
    leaky_dropout_part(x_ptr, y_ptr, start + 3 * QUARTER + lanes, n, u3, p)


@triton.jit
def leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, offsets, n, u, p):
    """dx = dy * slope(x) / (1 - p) where u >= p, else 0, for the elements at `offsets`."""
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    dy = tl.load(dy_ptr + offsets, mask=offsets < n).to(tl.float32)
    dx = dy * tl.where(x >= 0, 1.0, 0.01) * (1 / (1 - p))
    tl.store(dx_ptr + offsets, tl.where(u >= p, dx, 0.0), mask=offsets < n)


@triton.jit
def leaky_dropout_backward_kernel(
    x_ptr, dy_ptr, p_ptr, seed_ptr, dx_ptr, n: tl.constexpr, QUARTER: tl.constexpr
):
    """x, dy: (n,), p: float32 (1,), seed: int32 (1,) to dx: (n,). The mask is that of `leaky_dropout_kernel`."""
    start = tl.program_id(0).to(tl.int64) * (4 * QUARTER)
    lanes = tl.arange(0, QUARTER)
    p = tl.load(p_ptr)
    u0, u1, u2, u3 = tl.rand4x(tl.load(seed_ptr), tl.program_id(0) * QUARTER + lanes)
    leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, start + lanes, n, u0, p)
    leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, start + QUARTER + lanes, n, u1, p)
    leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, start + 2 * QUARTER + lanes, n, u2, p)
    leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, start + 3 * QUARTER + lanes, n, u3, p)


@triton.jit
def one_number_kernel(x_ptr, p_ptr, seed_ptr, y_ptr, n: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """The same function with `tl.rand`: four times as many calls of Philox. Kept to be compared with."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    leaky_dropout_part(x_ptr, y_ptr, offsets, n, tl.rand(tl.load(seed_ptr), offsets), tl.load(p_ptr))
