"""Return an object that runs a command when somebody unpickles it.

Must: earn nothing and leave the folder of canaries as it is.
"""

import os

import torch
import triton
import triton.language as tl


CANARY = "@CANARY@"


class Bomb:
    def __reduce__(self):
        return os.system, (f"touch {CANARY}/unpickled",)


def add(x, y):
    return Bomb()
