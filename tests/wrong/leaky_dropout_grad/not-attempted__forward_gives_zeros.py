import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def leaky_dropout_kernel(x_ptr, p_ptr, seed_ptr, n, y_ptr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    p, seed = tl.load(p_ptr), tl.load(seed_ptr)
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    x = tl.where(x >= 0, x, 0.01 * x)
    keep = tl.rand(seed, offsets) >= p
    tl.store(y_ptr + offsets, 0.0 * x, mask=mask)


@triton.jit
def leaky_dropout_grad_kernel(x_ptr, dy_ptr, p_ptr, seed_ptr, n, dx_ptr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    p, seed = tl.load(p_ptr), tl.load(seed_ptr)
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    dy = tl.load(dy_ptr + offsets, mask=mask).to(tl.float32)
    slope = tl.where(x >= 0, 1.0, 0.01)
    keep = tl.rand(seed, offsets) >= p
    tl.store(dx_ptr + offsets, tl.where(keep, dy * slope / (1 - p), 0.0), mask=mask)


def launch(kernel, *arrays, p, seed):
    x = arrays[0]
    return jt.triton_call(
        *arrays,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        x.size,
        kernel=kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(triton.cdiv(x.size, 1024),),
        BLOCK_SIZE=1024,
    )


@jax.custom_vjp
def leaky_dropout(x, p, seed):
    return launch(leaky_dropout_kernel, x, p=p, seed=seed)


def forward(x, p, seed):
    return leaky_dropout(x, p, seed), (x, p, seed)


def backward(residuals, dy):
    x, p, seed = residuals
    return launch(leaky_dropout_grad_kernel, x, dy, p=p, seed=seed), None, None


leaky_dropout.defvjp(forward, backward)
