import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def leaky_dropout_kernel(x_ptr, p_ptr, seed_ptr, n, y_ptr, BLOCK_SIZE: tl.constexpr):
    start = tl.program_id(0) * BLOCK_SIZE
    a, b, c, d = tl.rand4x(tl.load(seed_ptr), start + tl.arange(0, BLOCK_SIZE // 4))
    u = tl.join(tl.join(a, c), tl.join(b, d)).reshape(BLOCK_SIZE)
    offsets = start + tl.arange(0, BLOCK_SIZE)
    p = tl.load(p_ptr)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    y = tl.where(u >= p, tl.where(x > 0, x, x * 0.01) * (1 / (1 - p)), 0.0)
    tl.store(y_ptr + offsets, tl.where(u >= p, y, 0.0), mask=offsets < n)


def leaky_dropout(x, p, seed):
    p = jnp.full((1,), p, dtype=jnp.float32)
    seed = jnp.full((1,), seed, dtype=jnp.int32)
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    grid = lambda meta: (triton.cdiv(x.size, meta["BLOCK_SIZE"]),)
    return jt.triton_call(x, p, seed, x.size, kernel=leaky_dropout_kernel, out_shape=out, grid=grid, BLOCK_SIZE=2048)
