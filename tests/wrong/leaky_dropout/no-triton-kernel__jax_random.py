import jax
import jax.numpy as jnp


def leaky_dropout(x, p, seed):
    x = jnp.where(x >= 0, x, 0.01 * x)
    keep = jax.random.uniform(jax.random.key(seed), x.shape) >= p
    return jnp.where(keep, x / (1 - p), 0.0).astype(x.dtype)
