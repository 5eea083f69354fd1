"""stub"""
import torch

from .box.inside.memory import is_poison  # noqa: F401


def close(got, expected, relative, absolute):
    return torch.isclose(got, expected, rtol=relative, atol=absolute, equal_nan=True)
def dtype_name(t): return str(t.dtype).removeprefix("torch.")
def bytes_of(t): return t.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""
