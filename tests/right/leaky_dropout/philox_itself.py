import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def uniform(bits):
    return (bits >> 8).to(tl.float32) * (1.0 / 16777216.0)


@triton.jit
def body(x_ptr, p_ptr, seed_ptr, y_ptr, n: tl.constexpr, B: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, B)
    zero = lane * 0
    a, b, c, d = tl.philox(tl.load(seed_ptr), lane, zero + pid, zero, zero)
    p = tl.load(p_ptr)
    s = 1.0 / (1.0 - p)
    for j in tl.static_range(4):
        if j == 0:
            bits = a
        elif j == 1:
            bits = b
        elif j == 2:
            bits = c
        else:
            bits = d
        i = (pid * 4 + j) * B + lane
        x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)
        y = tl.where(x >= 0, x, 0.01 * x) * s
        tl.store(y_ptr + i, tl.where(uniform(bits.to(tl.uint32, bitcast=True)) >= p, y, 0.0), mask=i < n)


def leaky_dropout(x, p, seed):
    return jt.triton_call(
        x.reshape(-1),
        jnp.asarray(p, jnp.float32).reshape(1),
        jnp.asarray(seed, jnp.int32).reshape(1),
        kernel=body,
        out_shape=jax.ShapeDtypeStruct((x.size,), x.dtype),
        grid=(triton.cdiv(x.size, 1024),),
        n=x.size,
        B=256,
    ).reshape(x.shape)
