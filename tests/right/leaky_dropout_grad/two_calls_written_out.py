import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, p_ptr, seed_ptr, y_ptr, n: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    p = tl.load(p_ptr)
    seed = tl.load(seed_ptr)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    leaky = tl.where(x >= 0, x, 0.01 * x)
    u = tl.rand(seed, offsets)
    y = tl.where(u >= p, leaky * (1 / (1 - p)), 0.0)
    tl.store(y_ptr + offsets, y, mask=mask)


@triton.jit
def backward_kernel(x_ptr, dy_ptr, p_ptr, seed_ptr, dx_ptr, n: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    p = tl.load(p_ptr)
    seed = tl.load(seed_ptr)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    u = tl.rand(seed, offsets)
    dx = tl.where(x >= 0, dy, 0.01 * dy)
    dx = tl.where(u >= p, dx * (1 / (1 - p)), 0.0)
    tl.store(dx_ptr + offsets, dx, mask=mask)


@jax.custom_vjp
def leaky_dropout(x, p, seed):
    return jt.triton_call(
        x,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        kernel=forward_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(triton.cdiv(x.size, 1024),),
        n=x.size,
        BLOCK=1024,
    )


def forward(x, p, seed):
    return leaky_dropout(x, p, seed), (x, p, seed)


def backward(residuals, dy):
    x, p, seed = residuals
    dx = jt.triton_call(
        x,
        dy,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        kernel=backward_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(triton.cdiv(x.size, 1024),),
        n=x.size,
        BLOCK=1024,
    )
    return dx, None, None


leaky_dropout.defvjp(forward, backward)
