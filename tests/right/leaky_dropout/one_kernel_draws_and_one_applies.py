import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def draw(seed_ptr, u_ptr, n: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(u_ptr + i, tl.rand(tl.load(seed_ptr), i), mask=i < n)


@triton.jit
def apply(x_ptr, u_ptr, p_ptr, y_ptr, n: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    p = tl.load(p_ptr)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    u = tl.load(u_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.where(u >= p, tl.where(x >= 0, x, 0.01 * x) / (1 - p), 0.0), mask=i < n)


def leaky_dropout(x, p, seed):
    grid = (triton.cdiv(x.size, 1024),)
    u = jt.triton_call(
        jnp.asarray(seed, jnp.int32),
        kernel=draw,
        out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32),
        grid=grid,
        n=x.size,
        B=1024,
    )
    return jt.triton_call(
        x,
        u,
        jnp.asarray(p, jnp.float32),
        kernel=apply,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=grid,
        n=x.size,
        B=1024,
    )
