"""Setup exercise. Every program writes its own id."""
import torch
import triton
import triton.language as L
from triton import jit


@jit
def ids(destination, n: L.constexpr):
    me = L.program_id(0)
    inside = me < n
    L.store(destination + me, me, mask=inside)


def first_kernel(n: int) -> torch.Tensor:
    """Return tensor([0, 1, ..., n - 1]), made on the device."""
    if not isinstance(n, int) or n < 0:
        raise ValueError(f"n must be a non-negative int, got {n!r}")
    where = "cuda" if torch.cuda.is_available() else "cpu"
    result = torch.empty((n,), device=where, dtype=torch.int32)
    if n == 0:
        return result
    ids[(n,)](result, n=n)
    assert result.shape == (n,)
    return result
