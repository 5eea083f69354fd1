"""Finds what is wrong with the calls of one case: their masks and gradients. `dropout_values` looks at the values.

The mask is random, and an answer may map elements to random numbers in any way. So a mask is judged by properties that
every right mask has. The statistics are bounds: a right answer exceeds each of them with a probability of at most
1e-12. There are fewer than 100 bounds, so a judgement refuses a right answer with a probability below 1e-9.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import combinations

import torch

from ..tensors import close, is_poison
from ..text import many
from ..verdict import Finding
from .dropout_values import (
    BOUNDS,
    CHOOSE,
    COMPARE,
    IN_HALF,
    SLOPE,
    Dropout,
    about_values,
    gradient,
    not_finite,
    unwritten,
)
from .masks import ALPHA, correlated, plausible, plausible_range, repeats, shifted


def judge_calls(calls: list) -> Finding | None:
    """The finding that explains the calls of one case. Each call is a judge.jax_calls.Made with its output.

    A gradient is judged only where the forward pass is right: it follows its mask.
    """
    made = [Dropout(call) for call in calls]
    plain = [m for m in made if not m.call.grad]
    found = _first(map(about_values, plain)) or about_masks(plain)
    if len(plain) == len(made):
        return found
    if found:
        return _in_the_forward_pass(found, plain)
    pairs = zip(made, made[1:])  # a gradient comes directly after its forward call
    return _first(about_gradient(m, forward) for forward, m in pairs if m.call.grad)


def _first(findings: Iterable[Finding | None]) -> Finding | None:
    """The one that ranks first."""
    return min(filter(None, findings), key=lambda finding: finding.slug.rank, default=None)


def _in_the_forward_pass(found: Finding, plain: list[Dropout]) -> Finding:
    """What is wrong before any gradient."""
    if not any(bool(m.mask.any()) for m in plain):
        return Finding(
            "not-attempted",
            f"The forward pass gives zeros only ({plain[0].case.name}).",
            "The gradient follows the mask of the forward pass, which is leaky_dropout itself.",
            "solve leaky_dropout first.",
        )
    return replace(
        found,
        happened=f"The forward pass is not right yet. {found.happened}",
        advice=f"make leaky_dropout right first: {found.advice}",
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
    if all(bool(mask.all()) or not bool(mask.any()) for mask in masks) and len({bool(m.any()) for m in masks}) == 2:
        return Finding("same-mask", f"Each seed keeps all elements, or drops all ({case.name}).", *_ONE_NUMBER)
    k, n = sum(int(m.sum()) for m in masks), sum(m.numel() for m in masks)
    off = not plausible(k, n, 1 - p)
    rate = 1 - k / n if off else p
    # two masks with a pattern may agree by chance, so a pattern ranks first
    for mask in masks:
        if finding := about_pattern(mask, rate, case):
            return _same_for_two_seeds(masks, case, torch.equal) or finding
    if finding := _same_for_two_seeds(masks, case, partial(correlated, p=rate)):
        return finding
    if finding := _one_stream([m for m in masks if m.numel() >= 2048 and 0.1 < rate < 0.9], rate, case):
        return finding
    if finding := _shared_number(masks, rate, case):
        return finding
    return _wrong_rate(k, n, p, case) if off else None


def _shared_number(masks: list[torch.Tensor], p: float, case) -> Finding | None:
    """Two elements that are kept, and dropped, by the same seeds. With few seeds, that happens by chance."""
    elements = torch.stack([mask.flatten() for mask in masks], dim=1)
    agree = p * p + (1 - p) * (1 - p)
    if agree ** len(masks) * len(elements) ** 2 > 1e-5:
        return None
    _, word, count = torch.unique(elements, dim=0, return_inverse=True, return_counts=True)
    if not bool((count > 1).any()):
        return None
    shared = (count[word] > 1).nonzero().flatten()
    first, second = (word == word[shared[0]]).nonzero().flatten()[:2].tolist()
    return Finding(
        "same-mask",
        f"Elements {first} and {second} are kept by the same seeds, and dropped by the same seeds; {len(shared)} of "
        f"{len(elements)} elements have such a partner ({case.name}).",
        "They share one random number, so their masks are not independent.",
        "give every element another offset: tl.rand(seed, offsets), with the offsets of the element.",
    )


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


def _one_stream(masks: list[torch.Tensor], p: float, case) -> Finding | None:
    for mask, other in combinations(masks, 2):
        if (shift := shifted(mask.flatten(), other.flatten(), p)) is not None:
            return Finding(
                "seed-ignored",
                f"The masks of two seeds are alike if one of them is shifted by "
                f"{many(abs(shift), 'element', 'elements')} ({case.name}).",
                "All seeds use the same random numbers, from another place on. Masks of different layers and steps are "
                "then not independent.",
                "leave the offsets as they are, and give the seed to the generator: tl.rand(seed, offsets).",
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
        means = "An element is kept with probability p: the comparison or the tl.where is the wrong way round."
        return Finding("wrong-rate", happened, means, CHOOSE)
    return Finding("wrong-rate", happened, *COMPARE)


_ONE_NUMBER = (
    "Random numbers are used more than once: the generator gives one number for each pair (seed, offset).",
    "give every element an offset of its own: pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE).",
)


def about_pattern(mask: torch.Tensor, p: float, case) -> Finding | None:
    """Are the decisions independent? Tests the share of each row and column, and all pairs at one distance."""
    for axis, name in ((1, "row"), (0, "column")):
        counts, size = mask.sum(axis).tolist(), mask.shape[axis]
        for index, k in enumerate(counts):
            if not plausible(k, size, 1 - p, ALPHA / len(counts)):
                happened = f"In {name} {index}, {k} of {size} elements are kept ({case.name})."
                return Finding("same-mask", happened, *_ONE_NUMBER)
    distance = repeats(mask.flatten(), p)
    if distance is None:
        return None
    if distance == mask.shape[1]:
        happened = f"Different rows have the same mask ({case.name})."
    elif distance == 1:
        happened = f"Neighbours are kept or dropped together ({case.name})."
    else:
        happened = f"The mask repeats after {distance} elements ({case.name})."
    return Finding("same-mask", happened, *_ONE_NUMBER)


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
        return unwritten(made)
    if not bool(torch.isfinite(got).all()):
        return not_finite(made)
    at = tuple(int(i) for i in wrong.nonzero()[0])
    happened = f"The gradient at {at} is {float(got[at]):.6g}, expected {float(expected[at]):.6g} ({made.case.name})."
    slope = torch.where(made.x >= 0, 1.0, SLOPE).double()
    scale = 1 / (1 - made.p) if made.p < 1 else 0.0
    for value, slug, means, advice in (
        (torch.where(mask, 0.0, whole), "wrong-rate",
         "The gradient is 0 for kept elements, not for dropped ones: the comparison or the values of tl.where are the "
         "wrong way round.",
         CHOOSE),
        (torch.zeros_like(got), "not-attempted", "The gradient of x is zero everywhere.",
         "write the backward function. It returns the gradient of x first: dx, None, None."),
        (whole / scale * mask if scale else whole, "not-scaled", "The derivative of x / (1 - p) is 1 / (1 - p).",
         "divide by 1 - p in the backward pass too."),
        (whole, "wrong-value", "Dropped elements get a gradient, but the output does not depend on them.",
         "draw the same mask again from the same seed, and set the gradient of dropped elements to 0."),
        (made.w.double() * scale * mask, "wrong-value", "The derivative of leaky ReLU is 0.01 where x is negative.",
         "keep x for the backward pass, and multiply by tl.where(x >= 0, 1.0, 0.01)."),
        (torch.where(made.x >= 0, expected, 0.0), "wrong-value", "Negative elements have gradient 0: that is ReLU.",
         "multiply by tl.where(x >= 0, 1.0, 0.01)."),
        (whole * made.x.double() * mask, "wrong-value", "The incoming gradient is multiplied by leaky(x).",
         "multiply dy by the slope: 1 where x >= 0, else 0.01."),
        (gradient(made.w, made.p, made.x) * mask, "wrong-value", "x and dy have changed places.",
         "pass them in the order of the kernel's parameters."),
        (slope * scale * mask, "wrong-value", "The incoming gradient is ignored.",
         "multiply by the gradient that the backward function receives."),
    ):  # fmt: skip
        if bool(close(got, value, 4 * bound.relative, bound.absolute).all()):
            return Finding(slug, happened, means, advice)
    elsewhere = (got != 0) != mask
    ratio = got[mask] / whole[mask]
    middle = float(ratio.median()) if len(ratio) > 1 else 0.0
    rounding = 8 * bound.relative * abs(middle)
    if not bool(elsewhere.any()) and float((ratio - middle).abs().max()) <= rounding < abs(middle - 1):
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
            *IN_HALF,
        )
    right = close(got, whole, 2 * bound.relative, bound.absolute) | (got == 0)
    if bool(elsewhere.any()) and bool(right.all()):
        return Finding(
            "seed-ignored",
            f"{happened} The backward pass used another mask than the forward pass: {int(elsewhere.sum())} elements "
            "differ.",
            "The backward pass draws the mask again. The same seed and the same counters give the same mask.",
            "load the seed of the forward pass, and give tl.rand or tl.rand4x the same counters as its kernel does.",
        )
    return Finding(
        "wrong-value",
        f"{happened} {int(wrong.sum())} of {wrong.numel()} elements are wrong.",
        advice="write down the derivative of one kept element: dy · slope / (1 - p), with the slope at x.",
    )
