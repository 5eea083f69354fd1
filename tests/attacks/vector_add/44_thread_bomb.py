"""As many threads as there can be.

Must: earn nothing.
"""

import threading

import torch
import triton
import triton.language as tl


def add(x, y):
    wait = threading.Event()
    try:
        for _ in range(100_000):
            threading.Thread(target=wait.wait, daemon=True).start()
    except (RuntimeError, MemoryError):
        pass
    return x + y
