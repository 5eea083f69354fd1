"""Tests whether a mask of zeros and ones is random.

A right mask exceeds each bound with a probability of at most ALPHA.
"""

from __future__ import annotations

import math

import torch

ALPHA = 1e-12  # the probability that a right mask exceeds one bound, or one family of bounds

CORRELATED = 0.25  # the masks of two seeds correlate less at every shift


def plausible(k: int, n: int, q: float, alpha: float = ALPHA) -> bool:
    """Whether k of n is possible for n independent events of probability q.

    It returns False for a right answer with a probability of at most alpha: Chernoff, P <= 2 exp(-n KL(k/n || q)).
    """
    return n * _divergence(k / n, q) <= math.log(2 / alpha)


def plausible_range(n: int, q: float) -> tuple[float, float]:
    """The lowest and the highest share that `plausible` accepts."""

    def end(outer: float) -> float:
        inner = q
        for _ in range(30):
            middle = (inner + outer) / 2
            inner, outer = (middle, outer) if n * _divergence(middle, q) <= math.log(2 / ALPHA) else (inner, middle)
        return inner

    return end(0.0), end(1.0)


def _divergence(a: float, q: float) -> float:
    """Kullback-Leibler divergence of two coins, in nats."""
    parts = ((a, q), (1 - a, 1 - q))
    return sum(0.0 if x == 0 else math.inf if y <= 0 else x * math.log(x / y) for x, y in parts)


def correlated(mask: torch.Tensor, other: torch.Tensor, p: float) -> bool:
    """Whether two masks agree, or disagree, more than independent ones do: Azuma and Hoeffding's bound.

    The terms (kept - q)(kept' - q) have mean 0 and size at most c = max(p, q)^2, so their sum exceeds
    c sqrt(2 n ln(2 / alpha)) with probability at most alpha.
    """
    q = 1 - p
    total = float(((mask.double() - q) * (other.double() - q)).sum())
    return abs(total) > max(p, q) ** 2 * math.sqrt(2 * mask.numel() * math.log(2 / ALPHA))


def shifted(mask: torch.Tensor, other: torch.Tensor, p: float) -> int | None:
    """The shift at which two masks correlate most, if by more than CORRELATED there.

    With 2048 elements and p = 0.5, two right masks do so at any shift with a probability below 1e-24 (Hoeffding:
    4096 shifts, each with at most 2 exp(-n / 32)).
    """
    n, q = mask.numel(), 1 - p
    one, two = (torch.fft.rfft(each.double() - q, 2 * n) for each in (mask, other))
    sums = torch.fft.irfft(one.conj() * two, 2 * n).abs()
    most = int(sums.argmax())
    return (most if most < n else most - 2 * n) if float(sums[most]) > CORRELATED * n * p * q else None


def repeats(mask: torch.Tensor, p: float) -> int | None:
    """The shift at which a mask agrees with itself most, if that is more than chance allows.

    The bounds are those of `correlated`.
    """
    n, q = mask.numel(), 1 - p
    centred = mask.double() - q
    spectrum = torch.fft.rfft(centred, 2 * n)
    sums = torch.fft.irfft(spectrum.abs() ** 2, 2 * n)[1:n]
    terms = torch.arange(n - 1, 0, -1, dtype=torch.float64)
    bounds = max(p, q) ** 2 * torch.sqrt(2 * terms * math.log(2 * n / ALPHA))
    excess = sums.abs() / bounds
    return int(excess.argmax()) + 1 if bool((excess > 1).any()) else None
