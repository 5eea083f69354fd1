import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, p_ptr, seed_ptr, n, y_ptr, B: tl.constexpr):
    o = tl.arange(0, B)
    m = o < n
    p = tl.load(p_ptr)
    x = tl.load(x_ptr + o, mask=m)
    x = tl.where(x >= 0, x, 0.01 * x)
    tl.store(y_ptr + o, tl.where(tl.rand(tl.load(seed_ptr), o) >= p, x / (1 - p), 0.0), mask=m)


def leaky_dropout(x, p, seed):
    return jt.triton_call(
        x, jnp.asarray(p, jnp.float32), jnp.asarray(seed, jnp.int32), x.size, kernel=k,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(triton.cdiv(x.size, 1024),), B=1024,
    )
