import jax
import jax.numpy as jnp
import jax_triton as jt
import numpy as np
import torch
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



@triton.jit
def leaky_dropout_backward_kernel(y_ptr, dy_ptr, p_ptr, dx_ptr, n: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    p = tl.load(p_ptr)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    dy = tl.load(dy_ptr + offsets, mask=mask).to(tl.float32)
    slope = tl.where(y > 0, 1.0, 0.01)
    keep = y != 0  # what was dropped is 0 in the output: no random number needed
    tl.store(dx_ptr + offsets, tl.where(keep, dy * slope * (1 / (1 - p)), 0.0), mask=mask)


@jax.custom_vjp
def leaky_dropout(x, p, seed):
    quarter = 256
    return jt.triton_call(
        x,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        kernel=leaky_dropout_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(triton.cdiv(x.size, 4 * quarter),),
        n=x.size,
        QUARTER=quarter,
        num_warps=2,
    )


def forward(x, p, seed):
    y = leaky_dropout(x, p, seed)
    return y, (y, p)


def backward(residuals, dy):
    y, p = residuals
    dx = jt.triton_call(
        y,
        dy,
        jnp.asarray(p, jnp.float32),
        kernel=leaky_dropout_backward_kernel,
        out_shape=jax.ShapeDtypeStruct(y.shape, y.dtype),
        grid=(triton.cdiv(y.size, 1024),),
        n=y.size,
        BLOCK=1024,
    )
    return dx, None, None


leaky_dropout.defvjp(forward, backward)
