"""The values of leaky dropout: what a kept element is, and what is wrong with the output of one call.

Any element may be dropped, so an output is compared with the reference where it is not zero.
"""

from __future__ import annotations

import torch

from ..tensors import close, is_poison
from ..verdict import Finding
from .masks import plausible
from .spec import Bound

SLOPE = 0.01
# These allow for rounding: the slope, the scale and the product are each rounded once, in the narrowest dtype used.
BOUNDS = {torch.float32: Bound(2e-6, 1e-9), torch.float16: Bound(4e-3, 1e-6)}


def kept(x: torch.Tensor, p: float, *_) -> torch.Tensor:
    """The value of each element if it is kept, in float64."""
    x = x.double()
    return torch.where(x >= 0, x, SLOPE * x) / (1 - p) if p < 1 else torch.zeros_like(x)


def gradient(x: torch.Tensor, p: float, w: torch.Tensor) -> torch.Tensor:
    """The gradient of sum(w * leaky_dropout(x)) with respect to an element that is kept, in float64."""
    slope = torch.where(x >= 0, 1.0, SLOPE).double()
    return slope * w.double() / (1 - p) if p < 1 else torch.zeros_like(slope)


class Dropout:
    """One call of leaky_dropout(x, p, seed): its arguments, its output, and which elements were kept."""

    def __init__(self, made):
        self.case, self.call, self.got = made.case, made.call, made.got
        self.x, self.p, self.seed = made.arguments
        self.w = made.cotangent
        self.mask = made.got != 0  # no element of x is zero, so a zero was dropped


def about_values(made: Dropout) -> Finding | None:
    """Is every element either dropped, or leaky(x) / (1 - p)?"""
    if not made.got.numel():
        return None
    bound, got = BOUNDS[made.x.dtype], made.got.double()
    expected = kept(made.x, made.p)
    wrong = (got != 0) & ~close(got, expected, bound.relative, bound.absolute)
    if bool(is_poison(made.got).any()):
        return unwritten(made)
    moved = int(got.isinf().sum()) <= int(made.x.isinf().sum())  # the infinities of x, in other places
    if bool(got.isnan().any()) or bool((got.isinf() & torch.isfinite(expected)).any()) and not moved:
        return not_finite(made)
    if made.p == 1 and bool(made.mask.any()):
        return Finding("wrong-rate", f"{int(made.mask.sum())} elements are kept at p = 1, which drops all.", *COMPARE)
    if bool(wrong.any()):
        return _wrong_kept(made, wrong)
    if made.p == 0 and not bool(made.mask.all()):
        dropped = int((~made.mask).sum())
        return Finding("wrong-rate", f"{dropped} elements are dropped at p = 0, which keeps every element.", *COMPARE)
    negative = made.x < 0
    enough = 0.5 * (1 - made.p) * int((~negative).sum())  # a mask that drops nearly all tells nothing about the sign
    kept_signs = made.mask[negative].any(), int(made.mask[~negative].sum()) > enough
    if made.p < 0.9 and int(negative.sum()) >= 64 and kept_signs[1] and not bool(kept_signs[0]):
        return Finding(
            "wrong-value",
            f"Every negative element became zero ({made.case.name}).",
            "That is ReLU. Leaky ReLU multiplies a negative number by 0.01.",
            "use tl.where(x >= 0, x, 0.01 * x).",
        )
    return None


COMPARE = (
    "An element is kept if its random number, in [0, 1), is at least p.",
    "compare like this: keep = random >= p.",
)
CHOOSE = "compare like this: keep = random >= p, and choose like this: tl.where(keep, what is kept, 0.0)."


def unwritten(made: Dropout) -> Finding:
    holes = is_poison(made.got)
    first = tuple(int(i) for i in holes.nonzero()[0])
    return Finding(
        "unwritten-output",
        f"{int(holes.sum())} of {holes.numel()} elements were never written, the first at {first} ({made.case.name}).",
        "No program wrote them: the grid is too small, or the store's mask is too narrow.",
        "launch triton.cdiv(x.size, BLOCK_SIZE) programs, and mask with offsets < n.",
    )


def not_finite(made: Dropout) -> Finding:
    count = int((~torch.isfinite(made.got)).sum())
    happened = f"{count} of {made.got.numel()} elements are NaN or infinite ({made.case.name})."
    if made.p == 1:
        return Finding(
            "nan",
            happened,
            "At p = 1 the scale 1 / (1 - p) is infinite, and 0 times infinity is NaN.",
            "select the value, do not multiply by the mask: tl.where(keep, x / (1 - p), 0.0).",
        )
    if bool(made.got[made.x.isinf()].isnan().any()):
        return Finding(
            "nan",
            happened,
            "x holds infinities. A dropped element is 0, but 0 times infinity is NaN.",
            "select the value, do not multiply by the mask: tl.where(keep, x / (1 - p), 0.0).",
        )
    return Finding("nan", happened, advice="check the scale, and what masked-off lanes hold.")


IN_HALF = (
    "An intermediate value was kept in half precision, which has 8 or 11 bits: about three digits.",
    "convert to float32 right after the load, .to(tl.float32). The store converts back.",
)
_CANCELLED = (
    "More is rounded than three float32 operations do: a number is added and subtracted again, for example.",
    "store x / (1 - p) as it is.",
)


def _wrong_kept(made: Dropout, wrong: torch.Tensor) -> Finding:
    """Explains the wrong values of kept elements."""
    bound = BOUNDS[made.x.dtype]
    x, got = made.x.double(), made.got.double()
    leaky = torch.where(x >= 0, x, SLOPE * x)
    expected = kept(made.x, made.p)
    negative = wrong & (x < 0)  # shows the slope too
    at = tuple(int(i) for i in (negative if bool(negative.any()) else wrong).nonzero()[0])
    happened = f"Element {at} is {float(got[at]):.6g}. If kept, it is {float(expected[at]):.6g} ({made.case.name})."
    nonzero = got != 0

    def all_are(value):
        return bool(close(got[nonzero], value[nonzero], 4 * bound.relative, bound.absolute).all())

    if all_are(leaky) and made.p > 0:
        if bool(nonzero.all()):
            return Finding("wrong-rate", f"No element is dropped, and none is scaled ({made.case.name}).", *COMPARE)
        return Finding(
            "not-scaled",
            happened,
            "Kept elements were not scaled, so the expected sum of a layer changes by the factor 1 - p.",
            "divide kept elements by 1 - p.",
        )
    if all_are(x / (1 - made.p)) or all_are(x):
        return Finding(
            "wrong-value",
            happened,
            "Negative elements were not multiplied by 0.01: this is dropout without leaky ReLU.",
            "use tl.where(x >= 0, x, 0.01 * x) before the dropout.",
        )
    rest = wrong & close(got, leaky, 4 * bound.relative, bound.absolute)
    if made.p > 0 and bool((rest == wrong).all()) and not bool((got == 0).any()):
        return Finding(
            "wrong-value",
            happened,
            "Dropped elements still hold leaky(x). A dropped element must be 0.",
            "use tl.where(keep, x / (1 - p), 0.0).",
        )
    ratio = got[nonzero] / leaky[nonzero]
    middle = float(ratio.median())
    rounding = 8 * bound.relative * abs(middle) + 1e-12
    if float((ratio - middle).abs().max()) <= rounding < abs(middle - 1 / (1 - made.p)):
        return _for_another_p(made, happened, middle) or Finding(
            "constant-factor",
            f"{happened} Every kept element is {middle:.6g} times leaky(x), expected {1 / (1 - made.p):.6g}.",
            "An element is kept with probability 1 - p. The factor 1 / p uses the probability of a drop."
            if made.p and abs(middle * made.p - 1) < 1e-3
            else "Everything is right except for one constant factor.",
            "divide kept elements by 1 - p.",
        )
    off = (got / expected)[wrong]
    varies = float(off.max() - off.min()) > 0.1 * float((off - 1).abs().max())
    if varies and bool(close(got[nonzero], expected[nonzero], 0.01, 1e-6).all()):
        error = float((got / expected - 1)[wrong].abs().max())
        return Finding(
            "low-precision",
            f"{happened} Errors reach {error:.1e}.",
            *(IN_HALF if error > 1e-4 else _CANCELLED),
        )
    if not bool((wrong & (x >= 0)).any()):
        slopes = got[wrong] * (1 - made.p) / x[wrong]
        happened += f" Only negative elements are wrong; their slope is {float(slopes.median()):.4g}, expected {SLOPE}."
        return Finding("wrong-value", happened, advice="multiply negative elements by 0.01, and positive ones by 1.")
    return Finding(
        "wrong-value",
        f"{happened} {int(wrong.sum())} of {wrong.numel()} elements are neither dropped nor right.",
        "Perhaps an element was computed from another one: the load and the store must use the same offsets.",
        "follow one program by hand: which elements does it read, and where does it write?",
    )


def _for_another_p(made: Dropout, happened: str, factor: float) -> Finding | None:
    """The scale and the share of kept elements both belong to another p: rounded, or taken for 1 - p."""
    used = 1 - 1 / factor if factor >= 1 else -1.0
    k, n = int(made.mask.sum()), made.mask.numel()
    rounded = _is_round(used) and not _is_round(made.p)
    if not 0 <= used < 1 or not plausible(k, n, 1 - used):
        return None
    if not rounded and plausible(k, n, 1 - made.p, alpha=1e-4):
        return None
    if abs(used - (1 - made.p)) < 1e-3:
        means, advice = "p is taken for the probability that an element is kept. It is that of a drop.", COMPARE[1]
    else:
        means, advice = f"The scale and the rate are right for p = {used:.4g}.", "use p as it is, without rounding it."
    return Finding("wrong-rate", f"{happened} {k / n:.2%} of the elements are kept.", means, advice)


def _is_round(p: float) -> bool:
    """Whether p is a percentage or a multiple of 1/256. A p that is drawn is neither."""
    return any(abs(p * steps - round(p * steps)) < 1e-4 for steps in (100, 256))
