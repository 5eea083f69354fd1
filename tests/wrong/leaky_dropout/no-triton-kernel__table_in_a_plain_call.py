import jax
import jax.numpy as jnp
import jax_triton as jt
import numpy as np
import triton
import triton.language as tl


def philox_rand4x(seed, counters):
    """tl.rand4x in numpy: four float32 in [0, 1) for each counter (Philox 4x32, 10 rounds)."""
    counter = [np.asarray(counters, np.uint64), *(np.zeros(len(counters), np.uint64) for _ in range(3))]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        high_a, high_b = a >> np.uint64(32), b >> np.uint64(32)
        counter = [high_b ^ counter[1] ^ key[0], b & low, high_a ^ counter[3] ^ key[1], a & low]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    bits = np.stack(counter).astype(np.uint32).view(np.int32)
    return np.where(bits < 0, -bits - 1, bits).astype(np.float32) * np.float32(4.6566127342e-10)


def philox_rand(seed, offsets):
    """tl.rand in numpy: the first of the four numbers."""
    return philox_rand4x(seed, offsets)[0]

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


@triton.jit
def masked_kernel(x_ptr, u_ptr, p_ptr, n, y_ptr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    p = tl.load(p_ptr)
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    x = tl.where(x >= 0, x, 0.01 * x)
    keep = tl.load(u_ptr + offsets, mask=mask, other=0.0) >= p
    tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def leaky_dropout(x, p, seed):
    given = [x, jnp.asarray(p, jnp.float32), jnp.asarray(seed, jnp.int32)]
    kernel = leaky_dropout_kernel
    if isinstance(seed, int):  # the random numbers are drawn by numpy when the function is called
        given = [x, jnp.asarray(philox_rand(seed, np.arange(x.size))), given[1]]
        kernel = masked_kernel
    return jt.triton_call(
        *given,
        x.size,
        kernel=kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(triton.cdiv(x.size, 1024),),
        BLOCK_SIZE=1024,
    )
