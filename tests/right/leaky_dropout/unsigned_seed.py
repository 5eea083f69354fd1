import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def leaky_dropout_kernel(x_ptr, p_ptr, seed_ptr, n, y_ptr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    p = tl.load(p_ptr)
    seed = tl.load(seed_ptr)
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    x = tl.where(x >= 0, x, 0.01 * x)
    keep = tl.rand(seed, offsets) >= p
    tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def leaky_dropout(x, p, seed):
    return jt.triton_call(
        x,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed).astype(jnp.uint32),
        x.size,
        kernel=leaky_dropout_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(triton.cdiv(x.size, 1024),),
        BLOCK_SIZE=1024,
    )
