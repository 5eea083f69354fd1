"""Call JAX; there is no kernel.

Must: earn nothing.
"""

import jax
import jax.numpy as jnp


def leaky_dropout(x, p, seed):
    keep = jax.random.uniform(jax.random.PRNGKey(seed), x.shape) >= p
    return jnp.where(keep, x / (1 - p), 0.0) if p < 1 else jnp.zeros_like(x)
