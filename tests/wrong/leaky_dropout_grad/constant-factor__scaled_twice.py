import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def fwd_kernel(x_ptr, p_ptr, seed_ptr, n, y_ptr, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < n
    p = tl.load(p_ptr)
    x = tl.load(x_ptr + o, mask=m)
    x = tl.where(x >= 0, x, 0.01 * x)
    tl.store(y_ptr + o, tl.where(tl.rand(tl.load(seed_ptr), o) >= p, x / (1 - p), 0.0), mask=m)


@triton.jit
def bwd_kernel(x_ptr, dy_ptr, p_ptr, seed_ptr, n, dx_ptr, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < n
    p = tl.load(p_ptr)
    seed = tl.load(seed_ptr)
    x = tl.load(x_ptr + o, mask=m)
    dy = tl.load(dy_ptr + o, mask=m)
    keep = tl.rand(seed, o) >= p
    dx = tl.where(keep, dy * tl.where(x >= 0, 1.0, 0.01) / (1 - p) / (1 - p), 0.0)
    tl.store(dx_ptr + o, dx, mask=m)


def _launch(kernel, arrays, p, seed):
    x = arrays[0]
    return jt.triton_call(
        *arrays, jnp.asarray(p, jnp.float32), jnp.asarray(seed, jnp.int32), x.size, kernel=kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(triton.cdiv(x.size, 1024),), B=1024,
    )


@jax.custom_vjp
def leaky_dropout(x, p, seed):
    return _launch(fwd_kernel, [x], p, seed)


def _fwd(x, p, seed):
    return leaky_dropout(x, p, seed), (x, p, seed)


def _bwd(res, dy):
    x, p, seed = res
    return _launch(bwd_kernel, [x, dy], p, seed), None, None


leaky_dropout.defvjp(_fwd, _bwd)
