"""Take all memory in JAX's process, for which no limit of addresses is possible.

Must: earn nothing; be ended while the machine has memory left.
"""

import jax.numpy as jnp


def leaky_dropout(x, p, seed):
    taken = [b"x" * (100 << 20) for _ in range(1000)]
    return jnp.zeros_like(x) + len(taken)
