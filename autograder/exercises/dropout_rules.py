"""What is wrong with leaky dropout: values, masks and gradients of the calls of one case.

The mask is random, in any mapping from element to random number, so it is judged by what must hold for every
right one. Statistics are bounds, not tests at a level: a right answer is refused with a probability below
1e-9 a judgement (each of fewer than 100 bounds is exceeded with a probability of at most 1e-12).
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
# Up to rounding: the slope, the scale and the product are each rounded once, in the narrowest dtype used.
BOUNDS = {torch.float32: Bound(2e-6, 1e-9), torch.float16: Bound(4e-3, 1e-6)}


def kept(x: torch.Tensor, p: float, *_) -> torch.Tensor:
    """What an element is if it is kept, in float64."""
    x = x.double()
    return torch.where(x >= 0, x, SLOPE * x) / (1 - p) if p < 1 else torch.zeros_like(x)


def gradient(x: torch.Tensor, p: float, w: torch.Tensor) -> torch.Tensor:
    """The gradient of sum(w * leaky_dropout(x)) with respect to an element that is kept, in float64."""
    slope = torch.where(x >= 0, 1.0, SLOPE).double()
    return slope * w.double() / (1 - p) if p < 1 else torch.zeros_like(slope)


class Dropout:
    """One call of leaky_dropout(x, p, seed): what went in, what came out, and which elements were kept."""

    def __init__(self, made):
        self.case, self.call, self.got = made.case, made.call, made.got
        self.x, self.p, self.seed = made.arguments
        self.w = made.cotangent
        self.mask = made.got != 0  # no element of x is zero, so zeros are dropped ones


def judge_calls(calls: list) -> Finding | None:
    """What is wrong with the calls of one case, each a judge.jax.Made with its output; the first that ranks."""
    made = [Dropout(call) for call in calls]
    plain = [m for m in made if not m.call.grad]
    findings = [about_values(m) for m in plain]
    if not any(findings):
        pairs = zip(made, made[1:])  # a gradient follows the call that it belongs to
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
        return Finding("wrong-rate", f"{dropped} elements are dropped at p = 0, which keeps all.", *_COMPARE)
    negative = made.x < 0
    kept_signs = made.mask[negative].any(), made.mask[~negative].any()
    if made.p < 0.9 and int(negative.sum()) >= 64 and bool(kept_signs[1]) and not bool(kept_signs[0]):
        return Finding(
            "wrong-value",
            f"Every negative element became zero ({made.case.name}).",
            "That is ReLU. Leaky ReLU multiplies a negative number by 0.01.",
            "tl.where(x >= 0, x, 0.01 * x)",
        )
    return None


_COMPARE = (
    "An element is kept when its random number, in [0, 1), is at least p.",
    "compare with keep = random >= p.",
)


def _unwritten(made: Dropout) -> Finding:
    holes = is_poison(made.got)
    first = tuple(int(i) for i in holes.nonzero()[0])
    return Finding(
        "unwritten-output",
        f"{int(holes.sum())} of {holes.numel()} elements were never written, the first at {first} ({made.case.name}).",
        "No program reached them: the grid is too small, or the store's mask is too narrow.",
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
            "choose, do not multiply: tl.where(keep, x / (1 - p), 0.0).",
        )
    return Finding("nan", happened, advice="look at the scale, and at what masked-off lanes hold.")


def _wrong_kept(made: Dropout, wrong: torch.Tensor) -> Finding:
    """Kept elements have a value that they should not have: which one?"""
    bound = BOUNDS[made.x.dtype]
    x, got = made.x.double(), made.got.double()
    leaky = torch.where(x >= 0, x, SLOPE * x)
    expected = kept(made.x, made.p)
    at = tuple(int(i) for i in wrong.nonzero()[0])
    happened = f"Element {at} is {float(got[at]):.6g}; kept, it would be {float(expected[at]):.6g} ({made.case.name})."
    nonzero = got != 0

    def all_are(value):
        return bool(close(got[nonzero], value[nonzero], 4 * bound.relative, bound.absolute).all())

    if all_are(leaky) and made.p > 0:
        if bool(nonzero.all()):
            return Finding("wrong-rate", f"No element is dropped, and none is scaled ({made.case.name}).", *_COMPARE)
        return Finding(
            "not-scaled",
            happened,
            "Kept elements were not scaled: the sum of a layer would shrink by 1 - p.",
            "divide what is kept by 1 - p.",
        )
    if all_are(x / (1 - made.p)) or all_are(x):
        return Finding(
            "wrong-value",
            happened,
            "Negative elements were not multiplied by 0.01: this is dropout without leaky ReLU.",
            "tl.where(x >= 0, x, 0.01 * x), before the dropout.",
        )
    rest = wrong & close(got, leaky, 4 * bound.relative, bound.absolute)
    if made.p > 0 and bool((rest == wrong).all()) and not bool((got == 0).any()):
        return Finding(
            "wrong-value",
            happened,
            "Elements that were not scaled up were left as they are; a dropped element is 0.",
            "tl.where(keep, x / (1 - p), 0.0)",
        )
    ratio = got[nonzero] / leaky[nonzero]
    middle = float(ratio.median())
    if float((ratio - middle).abs().max()) <= 8 * bound.relative * abs(middle) + 1e-12:
        return Finding(
            "constant-factor",
            f"{happened} Every kept element is {middle:.6g} times leaky(x), expected {1 / (1 - made.p):.6g}.",
            "The probability of being kept is 1 - p; 1 / p scales by that of being dropped."
            if made.p and abs(middle * made.p - 1) < 1e-3
            else "Everything is right up to one factor.",
            "divide what is kept by 1 - p.",
        )
    if bool(close(got[nonzero], expected[nonzero], 0.01, 1e-6).all()):
        error = float((got / expected - 1)[wrong].abs().max())
        return Finding(
            "low-precision",
            f"{happened} Errors reach {error:.1e}.",
            "A number on the way was kept in half precision: 8 or 11 bits hold about three digits.",
            "convert to float32 right after the load, x.to(tl.float32); the store converts back.",
        )
    if not bool((wrong & (x >= 0)).any()):
        slopes = got[wrong] * (1 - made.p) / x[wrong]
        happened += f" Only negative elements are wrong; their slope is {float(slopes.median()):.4g}, expected {SLOPE}."
        return Finding("wrong-value", happened, advice="multiply negative elements by 0.01, and positive ones by 1.")
    return Finding(
        "wrong-value",
        f"{happened} {int(wrong.sum())} of {wrong.numel()} elements are neither dropped nor right.",
        "An element may have been computed from another one: the offsets of load and store have to agree.",
        "work one program out by hand: which elements does it read, and where does it write?",
    )


# -- the mask ------------------------------------------------------------------------------------------------------


def about_masks(made: list[Dropout]) -> Finding | None:
    """Same seed, same mask; other seed, other mask; the right share of elements, independent of each other."""
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
    # masks with a pattern of their own may agree by chance: the pattern comes first
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
                "give the seed to the generator: tl.rand(seed, offsets).",
            )
    return None


def _unsteady(before: Dropout, after: Dropout) -> Finding:
    how = "under jax.jit" if after.call.jit else "in a second call"
    return Finding(
        "seed-ignored",
        f"Seed {after.seed} gave another mask {how} ({after.case.name}).",
        "The mask has to depend on the seed's value and the element, and on nothing else. An array that reaches the "
        "kernel is a pointer: its address is not its value.",
        "seed = tl.load(seed_ptr), then tl.rand(seed, offsets).",
    )


def _wrong_rate(k: int, n: int, p: float, case) -> Finding:
    low, high = plausible_range(n, 1 - p)
    happened = (
        f"{k / n:.2%} of {n} elements are kept; with p = {p:g} it is {1 - p:.0%}, and chance stays between {low:.2%} "
        f"and {high:.2%} ({case.name})."
    )
    if plausible(k, n, p):
        means = "The comparison is the wrong way round: an element is kept with probability p."
        return Finding("wrong-rate", happened, means, _COMPARE[1])
    return Finding("wrong-rate", happened, *_COMPARE)


def about_pattern(mask: torch.Tensor, p: float, case) -> Finding | None:
    """Are the decisions independent? Rows and columns by their share, all pairs at one distance by correlation."""
    means = "The same random numbers are used again: the generator gives one number for each pair (seed, offset)."
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
        happened = f"Rows have the same mask ({case.name})."
    elif distance == 1:
        happened = f"Neighbours share their fate ({case.name})."
    else:
        happened = f"The mask repeats itself after {distance} elements ({case.name})."
    return Finding("same-mask", happened, means, advice)


# -- the gradient --------------------------------------------------------------------------------------------------


def about_gradient(made: Dropout, forward: Dropout) -> Finding | None:
    """Is it w * slope / (1 - p) where the forward pass kept an element, and 0 where it dropped it?"""
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
         "Where the forward pass kept an element the gradient is 0, and the other way round.", _COMPARE[1]),
        (torch.zeros_like(got), "not-attempted", "The gradient is zero everywhere.", "write the backward function."),
        (whole / scale * mask if scale else whole, "not-scaled", "The derivative of x / (1 - p) is 1 / (1 - p).",
         "divide by 1 - p in the backward pass too."),
        (whole, "wrong-value", "Dropped elements get a gradient, but the output does not depend on them.",
         "draw the same mask again, from the same seed, and set the gradient of dropped elements to 0."),
        (made.w.double() * scale * mask, "wrong-value", "The derivative of leaky ReLU is 0.01 where x is negative.",
         "keep x for the backward pass, and multiply by tl.where(x >= 0, 1.0, 0.01)."),
        (torch.where(made.x >= 0, expected, 0.0), "wrong-value", "Negative elements got no gradient: that is ReLU's.",
         "multiply by tl.where(x >= 0, 1.0, 0.01)."),
        (slope * scale * mask, "wrong-value", "The gradient that comes in from behind is ignored.",
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
            "Everything is right up to one factor.",
            "divide by 1 - p, once.",
        )
    if not bool(elsewhere.any()) and bool(close(got, expected, 0.01, 1e-6).all()):
        return Finding(
            "low-precision",
            happened,
            "A number on the way was kept in half precision: 8 or 11 bits hold about three digits.",
            "convert to float32 right after the load, .to(tl.float32); the store converts back.",
        )
    right = close(got, whole, 2 * bound.relative, bound.absolute) | (got == 0)
    if bool(elsewhere.any()) and bool(right.all()):
        return Finding(
            "seed-ignored",
            f"{happened} The backward pass used another mask than the forward pass: {int(elsewhere.sum())} elements "
            "differ.",
            "The mask is not kept, it is drawn again: same seed, same offsets, same mask.",
            "give the seed to the backward function, in the residuals, and use the same offsets.",
        )
    return Finding(
        "wrong-value",
        f"{happened} {int(wrong.sum())} of {wrong.numel()} elements are wrong.",
        advice="write down the derivative of one kept element: w · slope / (1 - p).",
    )
