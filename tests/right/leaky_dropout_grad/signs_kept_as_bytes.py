import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def fk(x_ptr, p_ptr, seed_ptr, y_ptr, neg_ptr, n: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    p = tl.load(p_ptr)
    y = tl.where(x < 0, 0.01 * x, x) / (1 - p)
    tl.store(y_ptr + i, tl.where(tl.rand(tl.load(seed_ptr), i) >= p, y, 0.0), mask=i < n)
    tl.store(neg_ptr + i, (x < 0).to(tl.int8), mask=i < n)


@triton.jit
def bk(neg_ptr, dy_ptr, p_ptr, seed_ptr, dx_ptr, n: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    neg = tl.load(neg_ptr + i, mask=i < n)
    dy = tl.load(dy_ptr + i, mask=i < n).to(tl.float32)
    p = tl.load(p_ptr)
    dx = tl.where(neg != 0, 0.01 * dy, dy) / (1 - p)
    tl.store(dx_ptr + i, tl.where(tl.rand(tl.load(seed_ptr), i) >= p, dx, 0.0), mask=i < n)


def both(x, p, seed):
    return jt.triton_call(
        x,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        kernel=fk,
        out_shape=(jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct(x.shape, jnp.int8)),
        grid=(triton.cdiv(x.size, 512),),
        n=x.size,
        B=512,
    )


@jax.custom_vjp
def leaky_dropout(x, p, seed):
    return both(x, p, seed)[0]


def fwd(x, p, seed):
    y, neg = both(x, p, seed)
    return y, (neg, p, seed)


def bwd(res, dy):
    neg, p, seed = res
    dx = jt.triton_call(
        neg,
        dy,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        kernel=bk,
        out_shape=jax.ShapeDtypeStruct(dy.shape, dy.dtype),
        grid=(triton.cdiv(dy.size, 512),),
        n=dy.size,
        B=512,
    )
    return dx, None, None


leaky_dropout.defvjp(fwd, bwd)
