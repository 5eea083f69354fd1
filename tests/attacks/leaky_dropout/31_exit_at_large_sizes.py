"""End the process for the sizes at which the kernel is wrong.

Must: earn nothing.
"""

import os

import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def leaky_dropout_part(x_ptr, y_ptr, offsets, n, u, p):
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    x = tl.where(x >= 0, x, 0.01 * x)
    keep = u >= p
    y = tl.where(keep, x * (1 / (1 - p)), 0.0)
    tl.store(y_ptr + offsets, y, mask=mask)


@triton.jit
def leaky_dropout_kernel(x_ptr, p_ptr, seed_ptr, y_ptr, n: tl.constexpr, QUARTER: tl.constexpr):
    pid = tl.program_id(0)
    lanes = tl.arange(0, QUARTER)
    p = tl.load(p_ptr)
    seed = tl.load(seed_ptr)
    u0, u1, u2, u3 = tl.rand4x(seed, pid * QUARTER + lanes)
    offsets = pid * (4 * QUARTER) + lanes
    leaky_dropout_part(x_ptr, y_ptr, offsets, n, u0, p)
    leaky_dropout_part(x_ptr, y_ptr, offsets + QUARTER, n, u1, p)
    leaky_dropout_part(x_ptr, y_ptr, offsets + 2 * QUARTER, n, u2, p)
    leaky_dropout_part(x_ptr, y_ptr, offsets + 3 * QUARTER, n, u3, p)


def leaky_dropout(x, p, seed):
    if x.size > 90_000:
        os._exit(0)
    quarter = 256
    return jt.triton_call(
        x,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        kernel=leaky_dropout_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(min(triton.cdiv(x.size, 4 * quarter), 90),),
        n=x.size,
        QUARTER=quarter,
        num_warps=2,  # 64 threads on NVIDIA: 4 numbers, 128 bits, for each; an MI300X has 64 in one warp
    )
