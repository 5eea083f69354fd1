"""Call the reference that the judge compares with.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


def add(x, y):
    from autograder.exercises import EXERCISES

    return EXERCISES["vector_add"].reference(x, y).to(x.dtype)
