import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def tiles(x_ptr, seed_ptr, rows, columns, y_ptr, p: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < columns)
    at = row * columns + column
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    x = tl.where(x >= 0, x, 0.01 * x)
    if p < 1:
        x = x / (1 - p)
    keep = tl.rand(tl.load(seed_ptr), at) >= p
    tl.store(y_ptr + at, tl.where(keep, x, 0.0), mask=inside)


def leaky_dropout(x, p, seed):
    rows, columns = x.shape
    return jt.triton_call(
        x,
        jnp.array([seed], dtype=jnp.int32),
        rows,
        columns,
        kernel=tiles,
        out_shape=[jax.ShapeDtypeStruct(x.shape, x.dtype)],
        grid=(triton.cdiv(rows, 8), triton.cdiv(columns, 128)),
        p=float(p),
        ROWS=8,
        COLUMNS=128,
    )[0]
