"""Leave folders nested so deeply that nobody can remove them, for the next submission to meet.

Must: earn nothing, leave no folder.
"""

import os
import tempfile

import jax.numpy as jnp


def leaky_dropout(x, p, seed):
    os.chdir(tempfile.gettempdir())
    for _ in range(3000):
        os.makedirs("deeper", exist_ok=True)
        os.chdir("deeper")
    return jnp.zeros_like(x)
