import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def leaky_dropout_kernel(x_ptr, p_ptr, seed_ptr, n_cols, y_ptr, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < n_cols
    p = tl.load(p_ptr)
    seed = tl.load(seed_ptr)
    offsets = row * n_cols + columns
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    x = tl.where(x >= 0, x, 0.01 * x)
    keep = tl.rand(seed, row) >= p
    tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def leaky_dropout(x, p, seed):
    n_rows, n_cols = x.shape
    return jt.triton_call(
        x,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        n_cols,
        kernel=leaky_dropout_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=n_rows,
        BLOCK_SIZE=triton.next_power_of_2(n_cols),
    )
