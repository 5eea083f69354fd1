"""Call torch.

Must: earn nothing.
"""

import torch
import triton
import triton.language as tl


def online_softmax(x):
    return torch.softmax(x, dim=-1)
