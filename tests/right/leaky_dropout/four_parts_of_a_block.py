import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


SLOPE = tl.constexpr(0.01)


@triton.jit
def activate(x, u, p):
    x = x.to(tl.float32)
    return tl.where(u < p, 0.0, tl.maximum(x, x * SLOPE) / (1.0 - p))


@triton.jit
def fused(x_ptr, settings_ptr, seed_ptr, n, y_ptr, QUARTER: tl.constexpr):
    block = tl.program_id(0).to(tl.int64) * 4 * QUARTER
    lanes = tl.arange(0, QUARTER)
    p = tl.load(settings_ptr)
    u0, u1, u2, u3 = tl.rand4x(tl.load(seed_ptr), tl.program_id(0) * QUARTER + lanes)
    i0 = block + lanes
    i1 = i0 + QUARTER
    i2 = i1 + QUARTER
    i3 = i2 + QUARTER
    tl.store(y_ptr + i0, activate(tl.load(x_ptr + i0, mask=i0 < n, other=0.0), u0, p), mask=i0 < n)
    tl.store(y_ptr + i1, activate(tl.load(x_ptr + i1, mask=i1 < n, other=0.0), u1, p), mask=i1 < n)
    tl.store(y_ptr + i2, activate(tl.load(x_ptr + i2, mask=i2 < n, other=0.0), u2, p), mask=i2 < n)
    tl.store(y_ptr + i3, activate(tl.load(x_ptr + i3, mask=i3 < n, other=0.0), u3, p), mask=i3 < n)


@jax.jit
def call(flat, p, seed):
    return jt.triton_call(
        flat,
        p,
        seed,
        flat.size,
        kernel=fused,
        out_shape=jax.ShapeDtypeStruct(flat.shape, flat.dtype),
        grid=(triton.cdiv(flat.size, 1024), 1, 1),
        QUARTER=256,
    )


def leaky_dropout(x, p, seed):
    return call(x.ravel(), jnp.float32(p), jnp.int32(seed)).reshape(x.shape)
