import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, p_ptr, seed_ptr, n, y_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < n
    p = tl.load(p_ptr)
    seed = tl.load(seed_ptr)
    x = tl.load(x_ptr + offs, mask=inside, other=0.0).to(tl.float32)
    leaky = tl.where(x >= 0, x, x * 0.01)
    u = tl.rand(seed, offs)
    y = tl.where(u >= p, leaky / (1.0 - p), 0.0)
    tl.store(y_ptr + offs, y, mask=inside)


def leaky_dropout(x, p, seed):
    block = 1024
    return jt.triton_call(
        x,
        jnp.round(jnp.asarray(p, dtype=jnp.float32), 1),
        jnp.asarray(seed, dtype=jnp.int32),
        x.size,
        kernel=dropout_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(triton.cdiv(x.size, block),),
        BLOCK=block,
    )
