"""Let JAX compute by a scatter that multiplies, and a kernel copy.

Must: earn nothing.
"""

import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def factor_kernel(x_ptr, p_ptr, seed_ptr, n, y_ptr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    keep = tl.rand(tl.load(seed_ptr), offsets) >= tl.load(p_ptr)
    slope = tl.where(x >= 0, 1.0, 0.01)
    tl.store(y_ptr + offsets, tl.where(keep, slope / (1 - tl.load(p_ptr)), 0.0), mask=offsets < n)


def leaky_dropout(x, p, seed):
    factor = jt.triton_call(
        x,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        x.size,
        kernel=factor_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(triton.cdiv(x.size, 1024),),
        BLOCK_SIZE=1024,
    )
    return x.at[...].multiply(factor)
