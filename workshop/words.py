"""Numbers in words."""

import numpy as np


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def times(counts: np.ndarray) -> str:
    if not counts.size:
        return "0 times"
    low, high = int(counts.min()), int(counts.max())
    return ("once" if low == 1 else f"{low} times") if low == high else f"{low} to {high} times"


def short(value: float) -> str:
    """At most four digits; infinities and NaN as they are read."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4g}".replace("-", "−")
