import jax
import jax.numpy as jnp
import jax_triton as jt
import numpy as np
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, p_ptr, seed_ptr, y_ptr, n: tl.constexpr, Q: tl.constexpr):
    pid = tl.program_id(0)
    p = tl.load(p_ptr)
    c = pid * Q + tl.arange(0, Q)
    a, b, cc, d = tl.rand4x(tl.load(seed_ptr), c)
    u = tl.join(tl.join(a, b), tl.join(cc, d))           # Q, 2, 2
    i = c[:, None, None] * 4 + tl.arange(0, 2)[None, :, None] * 2 + tl.arange(0, 2)[None, None, :]
    v = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    v = tl.where(v < 0, v * 0.01, v)
    tl.store(y_ptr + i, tl.where(u >= p, v / (1 - p), 0.0), mask=i < n)

def leaky_dropout(x, p, seed):
    q = 128
    return jt.triton_call(x, jnp.array(p, dtype=jnp.float32), jnp.array(seed, dtype=jnp.int32), kernel=k,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=triton.cdiv(x.size, 4 * q), n=x.size, Q=q)
