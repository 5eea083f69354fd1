"""Functions of the vendors' mathematical libraries, by their symbols."""

from __future__ import annotations

import torch
from torch import Tensor

from .front_end import Unsupported


def call(symbol: str, args: list[Tensor], dtype: torch.dtype) -> Tensor:
    raise Unsupported("libdevice " + symbol)
