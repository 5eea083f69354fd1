import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def leaky_dropout_part(x_ptr, y_ptr, offsets, n, u, p):
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.where(x >= 0, x, 0.01 * x)
    y = y / (1 - p)
    y = tl.where(u >= p, y, 0.0)
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
def leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, offsets, n, u, p):
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    dy = tl.load(dy_ptr + offsets, mask=mask).to(tl.float32)
    dx = tl.where(x >= 0, dy, 0.01 * dy)
    dx = dx / (1 - p)
    dx = tl.where(u >= p, dx, 0.0)
    tl.store(dx_ptr + offsets, dx, mask=mask)


@triton.jit
def leaky_dropout_backward_kernel(x_ptr, dy_ptr, p_ptr, seed_ptr, dx_ptr, n: tl.constexpr, QUARTER: tl.constexpr):
    pid = tl.program_id(0)
    lanes = tl.arange(0, QUARTER)
    p = tl.load(p_ptr)
    seed = tl.load(seed_ptr)
    u0, u1, u2, u3 = tl.rand4x(seed, pid * QUARTER + lanes)
    offsets = pid * (4 * QUARTER) + lanes
    leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, offsets, n, u0, p)
    leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, offsets + QUARTER, n, u1, p)
    leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, offsets + 2 * QUARTER, n, u2, p)
    leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, offsets + 3 * QUARTER, n, u3, p)


def launch(kernel, arrays, p, seed):
    x = arrays[0]
    quarter = 256
    return jt.triton_call(
        *arrays,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        kernel=kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(triton.cdiv(x.size, 4 * quarter),),
        n=x.size,
        QUARTER=quarter,
        num_warps=2 * len(arrays),
    )


@jax.custom_vjp
def leaky_dropout(x, p, seed):
    return launch(leaky_dropout_kernel, [x], p, seed)


def forward(x, p, seed):
    return leaky_dropout(x, p, seed), (x, p, seed)


def backward(residuals, dy):
    x, p, seed = residuals
    return launch(leaky_dropout_backward_kernel, [x, dy], p, seed), None, None


leaky_dropout.defvjp(forward, backward)
