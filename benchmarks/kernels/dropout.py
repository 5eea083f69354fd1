"""Leaky ReLU and dropout in one pass, forward and backward.

The mask is drawn from a counter-based generator (Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy
as 1, 2, 3", 2011), so it needs no memory: the backward pass draws it again. One call of Philox makes four numbers.
`tl.rand` keeps one of them, `tl.rand4x` keeps all four.

A mask can only go with a load of 16 bytes if the number of elements is a multiple of 4 and the compiler knows it. So
only the last program has a mask; the others know that all of their elements exist.
"""

import triton
import triton.language as tl

# Both passes cut the elements in the same way, because the mask depends on it.
QUARTER = 256
# Warps, by Triton's backend. "cuda": the best of sweep.py on one H200. "hip": 4 numbers, 16 bytes, per thread; no AMD
# card has run it.
FORWARD_WARPS = {"cuda": 2, "hip": 1}
BACKWARD_WARPS = {"cuda": 4, "hip": 1}


@triton.jit
def leaky_dropout(x, u, p):
    """leaky(x) / (1 - p) where u >= p, else 0. u: random numbers, as many as x has elements."""
    scale = 1 / (1 - p)  # one division; infinite for p = 1, where nothing is kept
    x = x.to(tl.float32)
    return tl.where(u >= p, tl.where(x >= 0, x, 0.01 * x) * scale, 0.0)


@triton.jit
def leaky_dropout_part(x_ptr, y_ptr, start, n, seed, p, QUARTER: tl.constexpr, WHOLE: tl.constexpr):
    """`leaky_dropout` of four blocks of QUARTER elements from element `start` on. WHOLE: all of them are below n.

    All loads come before the random numbers, which take long, and before the first store: a load waits for the stores
    before it, since the compiler cannot know that they differ.
    """
    lanes = tl.arange(0, QUARTER)
    xs = ()
    for k in tl.static_range(4):
        offsets = start + k * QUARTER + lanes
        xs = xs + (tl.load(x_ptr + offsets, mask=None if WHOLE else offsets < n),)
    us = tl.rand4x(seed, tl.program_id(0) * QUARTER + lanes)
    for k in tl.static_range(4):
        offsets = start + k * QUARTER + lanes
        tl.store(y_ptr + offsets, leaky_dropout(xs[k], us[k], p), mask=None if WHOLE else offsets < n)


@triton.jit
def leaky_dropout_kernel(x_ptr, p_ptr, seed_ptr, y_ptr, n: tl.constexpr, QUARTER: tl.constexpr):
    """x: (n,), p: float32 (1,), seed: int32 (1,) to y: (n,). A program has four blocks of QUARTER elements.

    Number k of a counter belongs to block k, so that each block is loaded and stored in the widest pieces.
    """
    start = tl.program_id(0).to(tl.int64) * (4 * QUARTER)
    p, seed = tl.load(p_ptr), tl.load(seed_ptr)
    if start + 4 * QUARTER <= n:
        leaky_dropout_part(x_ptr, y_ptr, start, n, seed, p, QUARTER, WHOLE=True)
    else:
        leaky_dropout_part(x_ptr, y_ptr, start, n, seed, p, QUARTER, WHOLE=False)


@triton.jit
def leaky_dropout_backward_part(
    x_ptr, dy_ptr, dx_ptr, start, n, seed, p, QUARTER: tl.constexpr, WHOLE: tl.constexpr
):
    """dx = dy * slope(x) / (1 - p) where u >= p, else 0, of four blocks, as in the other pass."""
    lanes = tl.arange(0, QUARTER)
    xs, dys = (), ()
    for k in tl.static_range(4):
        offsets = start + k * QUARTER + lanes
        xs = xs + (tl.load(x_ptr + offsets, mask=None if WHOLE else offsets < n),)
        dys = dys + (tl.load(dy_ptr + offsets, mask=None if WHOLE else offsets < n),)
    us = tl.rand4x(seed, tl.program_id(0) * QUARTER + lanes)
    for k in tl.static_range(4):
        offsets = start + k * QUARTER + lanes
        dx = dys[k].to(tl.float32) * tl.where(xs[k] >= 0, 1.0, 0.01) * (1 / (1 - p))
        tl.store(dx_ptr + offsets, tl.where(us[k] >= p, dx, 0.0), mask=None if WHOLE else offsets < n)


@triton.jit
def leaky_dropout_backward_kernel(
    x_ptr, dy_ptr, p_ptr, seed_ptr, dx_ptr, n: tl.constexpr, QUARTER: tl.constexpr
):
    """x, dy: (n,), p: float32 (1,), seed: int32 (1,) to dx: (n,). The mask is that of `leaky_dropout_kernel`."""
    start = tl.program_id(0).to(tl.int64) * (4 * QUARTER)
    p, seed = tl.load(p_ptr), tl.load(seed_ptr)
    if start + 4 * QUARTER <= n:
        leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, start, n, seed, p, QUARTER, WHOLE=True)
    else:
        leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, start, n, seed, p, QUARTER, WHOLE=False)


@triton.jit
def one_number_kernel(x_ptr, p_ptr, seed_ptr, y_ptr, n: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """The same function with `tl.rand`: four times as many calls of Philox. Kept to be compared with."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = leaky_dropout(x, tl.rand(tl.load(seed_ptr), offsets), tl.load(p_ptr))
    tl.store(y_ptr + offsets, y, mask=offsets < n)
