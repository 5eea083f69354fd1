"""Finds what is wrong with leaky dropout: the values, masks and gradients of the calls of one case.

The mask is random, and an answer may map elements to random numbers in any way. So a mask is judged by properties that
every right mask has. The statistics are bounds: a right answer exceeds each of them with a probability of at most
1e-12. There are fewer than 100 bounds, so a judgement refuses a right answer with a probability below 1e-9.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations

import torch

from ..tensors import close, is_poison
from ..verdict import Finding
from .masks import ALPHA, correlated, plausible, plausible_range, repeats
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


def judge_calls(calls: list) -> Finding | None:
    """The finding that ranks first among the calls of one case. Each call is a judge.jax.Made with its output."""
    made = [Dropout(call) for call in calls]
    plain = [m for m in made if not m.call.grad]
    findings = [about_values(m) for m in plain]
    if not any(findings):
        pairs = zip(made, made[1:])  # a gradient comes directly after its forward call
        findings += [about_gradient(m, forward) for forward, m in pairs if m.call.grad]
    if not any(findings):
        findings.append(about_masks(plain))
    return min(filter(None, findings), key=lambda finding: finding.slug.rank, default=None)


# -- values --------------------------------------------------------------------------------------------------------


def about_values(made: Dropout) -> Finding | None:
    """Is every element either dropped, or leaky(x) / (1 - p)?"""
    if not made.got.numel():
        return None
    bound, got = BOUNDS[made.x.dtype], made.got.double()
    expected = kept(made.x, made.p)
    wrong = (got != 0) & ~close(got, expected, bound.relative, bound.absolute)
    if bool(is_poison(made.got).any()):
        return _unwritten(made)
    if not bool(torch.isfinite(got).all()):
        return _not_finite(made)
    if made.p == 1 and bool(made.mask.any()):
        return Finding("wrong-rate", f"{int(made.mask.sum())} elements are kept at p = 1, which drops all.", *_COMPARE)
    if bool(wrong.any()):
        return _wrong_kept(made, wrong)
    if made.p == 0 and not bool(made.mask.all()):
        dropped = int((~made.mask).sum())
        return Finding("wrong-rate", f"{dropped} elements are dropped at p = 0, which keeps every element.", *_COMPARE)
    negative = made.x < 0
    kept_signs = made.mask[negative].any(), made.mask[~negative].any()
    if made.p < 0.9 and int(negative.sum()) >= 64 and bool(kept_signs[1]) and not bool(kept_signs[0]):
        return Finding(
            "wrong-value",
            f"Every negative element became zero ({made.case.name}).",
            "That is ReLU. Leaky ReLU multiplies a negative number by 0.01.",
            "use tl.where(x >= 0, x, 0.01 * x).",
        )
    return None


_COMPARE = (
    "An element is kept if its random number, in [0, 1), is at least p.",
    "compare like this: keep = random >= p.",
)


def _unwritten(made: Dropout) -> Finding:
    holes = is_poison(made.got)
    first = tuple(int(i) for i in holes.nonzero()[0])
    return Finding(
        "unwritten-output",
        f"{int(holes.sum())} of {holes.numel()} elements were never written, the first at {first} ({made.case.name}).",
        "No program wrote them: the grid is too small, or the store's mask is too narrow.",
        "launch triton.cdiv(x.size, BLOCK_SIZE) programs, and mask with offsets < n.",
    )


def _not_finite(made: Dropout) -> Finding:
    count = int((~torch.isfinite(made.got)).sum())
    happened = f"{count} of {made.got.numel()} elements are NaN or infinite ({made.case.name})."
    if made.p == 1:
        return Finding(
            "nan",
            happened,
            "At p = 1 the scale 1 / (1 - p) is infinite, and 0 times infinity is NaN.",
            "select the value, do not multiply by the mask: tl.where(keep, x / (1 - p), 0.0).",
        )
    return Finding("nan", happened, advice="check the scale, and what masked-off lanes hold.")


def _wrong_kept(made: Dropout, wrong: torch.Tensor) -> Finding:
    """Explains the wrong values of kept elements."""
    bound = BOUNDS[made.x.dtype]
    x, got = made.x.double(), made.got.double()
    leaky = torch.where(x >= 0, x, SLOPE * x)
    expected = kept(made.x, made.p)
    at = tuple(int(i) for i in wrong.nonzero()[0])
    happened = f"Element {at} is {float(got[at]):.6g}. If kept, it is {float(expected[at]):.6g} ({made.case.name})."
    nonzero = got != 0

    def all_are(value):
        return bool(close(got[nonzero], value[nonzero], 4 * bound.relative, bound.absolute).all())

    if all_are(leaky) and made.p > 0:
        if bool(nonzero.all()):
            return Finding("wrong-rate", f"No element is dropped, and none is scaled ({made.case.name}).", *_COMPARE)
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
    if float((ratio - middle).abs().max()) <= 8 * bound.relative * abs(middle) + 1e-12:
        return Finding(
            "constant-factor",
            f"{happened} Every kept element is {middle:.6g} times leaky(x), expected {1 / (1 - made.p):.6g}.",
            "An element is kept with probability 1 - p. The factor 1 / p uses the probability of a drop."
            if made.p and abs(middle * made.p - 1) < 1e-3
            else "Everything is right except for one constant factor.",
            "divide kept elements by 1 - p.",
        )
    if bool(close(got[nonzero], expected[nonzero], 0.01, 1e-6).all()):
        error = float((got / expected - 1)[wrong].abs().max())
        return Finding(
            "low-precision",
            f"{happened} Errors reach {error:.1e}.",
            "An intermediate value was kept in half precision, which has 8 or 11 bits: about three digits.",
            "convert to float32 right after the load, x.to(tl.float32). The store converts back.",
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


# -- the mask ------------------------------------------------------------------------------------------------------


def about_masks(made: list[Dropout]) -> Finding | None:
    """Same seed, same mask; other seed, other mask. Elements are kept independently, and the right share of them is."""
    case, p = made[0].case, made[0].p
    if not 0 < p < 1 or made[0].mask.numel() < 256:
        return None
    first: dict[int, Dropout] = {}
    for m in made:
        before = first.setdefault(m.seed, m)
        if not torch.equal(before.mask, m.mask):
            return _unsteady(before, m)
    masks = [m.mask for m in first.values()]
    k, n = sum(int(m.sum()) for m in masks), sum(m.numel() for m in masks)
    off = not plausible(k, n, 1 - p)
    rate = 1 - k / n if off else p
    # two masks with a pattern may agree by chance, so a pattern ranks first
    for mask in masks:
        if finding := about_pattern(mask, rate, case):
            return _same_for_two_seeds(masks, case, torch.equal) or finding
    if finding := _same_for_two_seeds(masks, case, partial(correlated, p=rate)):
        return finding
    return _wrong_rate(k, n, p, case) if off else None


def _same_for_two_seeds(masks: list[torch.Tensor], case, alike) -> Finding | None:
    for mask, other in combinations(masks, 2):
        if alike(mask, other):
            share = float((mask == other).double().mean())
            return Finding(
                "seed-ignored",
                f"Two seeds gave {'the same mask' if share == 1 else f'masks that agree in {share:.0%}'} "
                f"({case.name}).",
                "Every call, every layer and every step would drop the same elements.",
                "pass the seed to the generator: tl.rand(seed, offsets).",
            )
    return None


def _unsteady(before: Dropout, after: Dropout) -> Finding:
    how = "under jax.jit" if after.call.jit else "in a second call"
    return Finding(
        "seed-ignored",
        f"Seed {after.seed} gave another mask {how} ({after.case.name}).",
        "The mask must depend only on the value of the seed and on the element. In the kernel, an array argument is a "
        "pointer: it holds an address, not the value.",
        "load the value with seed = tl.load(seed_ptr), then call tl.rand(seed, offsets).",
    )


def _wrong_rate(k: int, n: int, p: float, case) -> Finding:
    low, high = plausible_range(n, 1 - p)
    happened = (
        f"{k / n:.2%} of {n} elements are kept. With p = {p:g}, {1 - p:.0%} are expected, and a right answer gives "
        f"{low:.2%} to "
        f"{high:.2%} ({case.name})."
    )
    if plausible(k, n, p):
        means = "The comparison is the wrong way round: an element is kept with probability p."
        return Finding("wrong-rate", happened, means, _COMPARE[1])
    return Finding("wrong-rate", happened, *_COMPARE)


def about_pattern(mask: torch.Tensor, p: float, case) -> Finding | None:
    """Are the decisions independent? Tests the share of each row and column, and all pairs at one distance."""
    means = "Random numbers are used more than once: the generator gives one number for each pair (seed, offset)."
    advice = "give every element an offset of its own: pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)."
    for axis, name in ((1, "row"), (0, "column")):
        counts, size = mask.sum(axis).tolist(), mask.shape[axis]
        for index, k in enumerate(counts):
            if not plausible(k, size, 1 - p, ALPHA / len(counts)):
                happened = f"In {name} {index}, {k} of {size} elements are kept ({case.name})."
                return Finding("same-mask", happened, means, advice)
    distance = repeats(mask.flatten(), p)
    if distance is None:
        return None
    if distance == mask.shape[1]:
        happened = f"Different rows have the same mask ({case.name})."
    elif distance == 1:
        happened = f"Neighbours are kept or dropped together ({case.name})."
    else:
        happened = f"The mask repeats after {distance} elements ({case.name})."
    return Finding("same-mask", happened, means, advice)


# -- the gradient --------------------------------------------------------------------------------------------------


def about_gradient(made: Dropout, forward: Dropout) -> Finding | None:
    """Checks that it is w * slope / (1 - p) where the forward pass kept an element, and 0 where it dropped one."""
    bound, got, mask = BOUNDS[made.x.dtype], made.got.double(), forward.mask
    whole = gradient(made.x, made.p, made.w)
    expected = torch.where(mask, whole, 0.0)
    wrong = ~close(got, expected, 2 * bound.relative, bound.absolute)
    if not bool(wrong.any()):
        return None
    if bool(is_poison(made.got).any()):
        return _unwritten(made)
    if not bool(torch.isfinite(got).all()):
        return _not_finite(made)
    at = tuple(int(i) for i in wrong.nonzero()[0])
    happened = f"The gradient at {at} is {float(got[at]):.6g}, expected {float(expected[at]):.6g} ({made.case.name})."
    slope = torch.where(made.x >= 0, 1.0, SLOPE).double()
    scale = 1 / (1 - made.p) if made.p < 1 else 0.0
    for value, slug, means, advice in (
        (torch.where(mask, 0.0, whole), "wrong-rate",
         "The gradient is 0 for kept elements, not for dropped ones: the comparison is the wrong way round.",
         _COMPARE[1]),
        (torch.zeros_like(got), "not-attempted", "The gradient is zero everywhere.", "write the backward function."),
        (whole / scale * mask if scale else whole, "not-scaled", "The derivative of x / (1 - p) is 1 / (1 - p).",
         "divide by 1 - p in the backward pass too."),
        (whole, "wrong-value", "Dropped elements get a gradient, but the output does not depend on them.",
         "draw the same mask again from the same seed, and set the gradient of dropped elements to 0."),
        (made.w.double() * scale * mask, "wrong-value", "The derivative of leaky ReLU is 0.01 where x is negative.",
         "keep x for the backward pass, and multiply by tl.where(x >= 0, 1.0, 0.01)."),
        (torch.where(made.x >= 0, expected, 0.0), "wrong-value", "Negative elements have gradient 0: that is ReLU.",
         "multiply by tl.where(x >= 0, 1.0, 0.01)."),
        (slope * scale * mask, "wrong-value", "The incoming gradient is ignored.",
         "multiply by the gradient that the backward function receives."),
    ):  # fmt: skip
        if bool(close(got, value, 4 * bound.relative, bound.absolute).all()):
            return Finding(slug, happened, means, advice)
    elsewhere = (got != 0) != mask
    ratio = got[mask] / whole[mask]
    middle = float(ratio.median()) if len(ratio) > 1 else 0.0
    if not bool(elsewhere.any()) and float((ratio - middle).abs().max()) <= 8 * bound.relative * abs(middle):
        return Finding(
            "constant-factor",
            f"{happened} Every gradient is {middle:.6g} times the right one.",
            "Everything is right except for one constant factor.",
            "divide by 1 - p exactly once.",
        )
    if not bool(elsewhere.any()) and bool(close(got, expected, 0.01, 1e-6).all()):
        return Finding(
            "low-precision",
            happened,
            "An intermediate value was kept in half precision, which has 8 or 11 bits: about three digits.",
            "convert to float32 right after the load, .to(tl.float32). The store converts back.",
        )
    right = close(got, whole, 2 * bound.relative, bound.absolute) | (got == 0)
    if bool(elsewhere.any()) and bool(right.all()):
        return Finding(
            "seed-ignored",
            f"{happened} The backward pass used another mask than the forward pass: {int(elsewhere.sum())} elements "
            "differ.",
            "The backward pass draws the mask again. The same seed and the same offsets give the same mask.",
            "pass the seed to the backward function in the residuals, and use the same offsets.",
        )
    return Finding(
        "wrong-value",
        f"{happened} {int(wrong.sum())} of {wrong.numel()} elements are wrong.",
        advice="write down the derivative of one kept element: w · slope / (1 - p).",
    )
