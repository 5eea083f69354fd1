"""What is wrong with the random masks of dropout, told from the outputs of a case.

An answer may map elements to random numbers in any way. So a mask is judged by properties that every right mask has:
the right share of elements is kept, elements are independent of each other, and so are seeds. Each test is a bound that
a right mask exceeds with a probability of at most ALPHA (two tests divide ALPHA by what they look at). An answer meets
fewer than 60 bounds, so a judgement refuses a right one with a probability below 1e-6.

Sources of the bounds: Hoeffding, Probability inequalities for sums of bounded random variables, 1963 (theorem 1 for the
rate, theorem 2 for sums of independent terms); Azuma, Weighted sums of certain dependent random variables, 1967, for
sums of products at one distance, which are a martingale.
"""

from __future__ import annotations

import functools
import itertools
import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import torch

from ..box.wire import FAR_WINDOW
from ..text import many
from ..verdict import Finding

ALPHA = 1e-8  # the probability that a right mask exceeds one bound
CORRELATED = 0.25  # the masks of two seeds correlate less at every shift; a mapping may share a few numbers
SMALLEST = torch.finfo(torch.float32).smallest_normal  # what is smaller may give an output of 0
MANY = 1024  # elements from which on distances and shifts are looked at
WINDOW = 64  # decisions in a row that are compared with those elsewhere

COMPARE = (
    "An element is kept if its random number, in [0, 1), is at least p.",
    "compare like this: keep = random >= p.",
)
_ONE_NUMBER = (
    "Random numbers are used more than once: the generator gives one number for each pair (seed, offset).",
    "give every element an offset of its own: pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE). Of the numbers that one "
    "call of tl.rand4x gives, use each for other elements.",
)


@dataclass
class Masks:
    """The masks of a case: for each seed, which elements of x were kept, as a row of booleans."""

    p: float
    x: torch.Tensor
    columns: int
    of_seed: dict[int, torch.Tensor]

    @functools.cached_property
    def all(self) -> list[torch.Tensor]:
        return list(self.of_seed.values())

    @functools.cached_property
    def counts(self) -> tuple[int, int]:
        """Elements kept, and elements, of all masks together."""
        return sum(int(mask.sum()) for mask in self.all), sum(mask.numel() for mask in self.all)

    @functools.cached_property
    def dropped(self) -> float:
        """The share of dropped elements that the tests of independence reckon with: p, or what is there instead."""
        k, n = self.counts
        return self.p if plausible(k, n, 1 - self.p) else 1 - k / n

    @functools.cached_property
    def first_spectra(self) -> list[torch.Tensor]:
        """Those of the first two masks."""
        return [spectrum(mask, self.dropped) for mask in self.all[:2]]


def judge_masks(calls: list) -> Finding | None:
    """Same seed, same mask; other seed, other mask; elements independent, and the right share of them kept.

    Each call is a JaxCall, seen with the values (x, p, seed, output). A zero was dropped, except where x is SMALLEST or
    smaller.
    """
    x, p, *_ = calls[0].seen.values
    if not x.numel():
        return None
    masks = Masks(p, x.flatten(), x.shape[-1], {})
    for each in calls:
        *_, seed, output = each.seen.values
        kept = ((output != 0) | (x.abs() <= SMALLEST)).flatten()
        if not torch.equal(masks.of_seed.setdefault(seed, kept), kept):
            return _unsteady(each, seed)
    if finding := _nothing_kept(masks) or _negative_dropped(masks):
        return finding
    tests = (_patterns, _alike_for_two_seeds, _shifted, _shared_number, _fixed_element)
    telling = x.numel() * masks.dropped * (1 - masks.dropped) > 40  # long, and random enough, for tests of independence
    found = (test(masks) for test in tests if telling)
    return _all_or_nothing(masks) or next(filter(None, found), None) or _wrong_rate(masks)


# -- rates -------------------------------------------------------------------------------------------------


def plausible(k: int, n: int, q: float, alpha: float = ALPHA) -> bool:
    """Whether k of n is possible for n independent events of probability q.

    It returns False for a right answer with a probability of at most alpha: Hoeffding's theorem 1, in Chernoff's form,
    P <= 2 exp(-n KL(k/n || q)).
    """
    parts = (k / n, q), (1 - k / n, 1 - q)
    divergence = sum(0.0 if x == 0 else math.inf if y <= 0 else x * math.log(x / y) for x, y in parts)  # of two coins
    return n * divergence <= math.log(2 / alpha)


def plausible_counts(n: int, q: float) -> tuple[int, int]:
    """The lowest and the highest number of n that `plausible` accepts."""
    middle = int(n * q)
    low = bisect_left(range(middle), True, key=lambda k: plausible(k, n, q))
    return low, middle + bisect_left(range(middle + 1, n + 1), True, key=lambda k: not plausible(k, n, q))


def _nothing_kept(masks: Masks) -> Finding | None:
    k, n = masks.counts
    if k or n * (1 - masks.p) < 2 * math.log(1 / ALPHA):
        return None
    happened = f"No element is kept. With p = {masks.p:.6g}, about {n * (1 - masks.p):.0f} of {n} are expected."
    return Finding("wrong-rate", happened, "The output is zero everywhere.", COMPARE[1])


def _negative_dropped(masks: Masks) -> Finding | None:
    kept = [torch.stack(masks.all)[:, part] for part in (masks.x < 0, masks.x > 0)]
    enough = (1 - masks.p) * kept[0].numel() > math.log(1 / ALPHA)
    if not enough or bool(kept[0].any()) or not plausible(int(kept[1].sum()), kept[1].numel(), 1 - masks.p):
        return None
    return Finding("wrong-value", "Every negative element became zero.",
                   "That is ReLU. Leaky ReLU multiplies a negative number by 0.01.",
                   "use tl.where(x >= 0, x, 0.01 * x).")


def _wrong_rate(masks: Masks) -> Finding | None:
    (k, n), p = masks.counts, masks.p
    if plausible(k, n, 1 - p):
        return None
    if p in (0, 1):
        count, what = (n - k, "dropped") if p == 0 else (k, "kept")
        are = f"{many(count, 'element is', 'elements are')} {what} at p = {p:g}"
        return Finding("wrong-rate", f"{are}, which {'keeps' if p == 0 else 'drops'} every element.", *COMPARE)
    low, high = plausible_counts(n, 1 - p)
    happened = (
        f"{k} of {n} elements are kept. With p = {p:.6g}, about {(1 - p) * n:.0f} are expected, and a right answer "
        f"keeps {low} to {high}."
    )
    if plausible(k, n, p):
        means = "An element is kept with probability p: the comparison or the tl.where is the wrong way round."
        advice = "compare like this: keep = random >= p, and choose like this: tl.where(keep, what is kept, 0.0)."
        return Finding("wrong-rate", happened, means, advice)
    return Finding("wrong-rate", happened, f"{COMPARE[0]} Is p rounded before the comparison?", COMPARE[1])


# -- elements ----------------------------------------------------------------------------------------------


def _all_or_nothing(masks: Masks) -> Finding | None:
    whole = {bool(mask.any()) for mask in masks.all if bool(mask.all()) or not bool(mask.any())}
    if len(whole) < 2 or masks.x.numel() < 64:
        return None
    return Finding("same-mask", "Each seed keeps all elements, or drops all.", *_ONE_NUMBER)


def _patterns(masks: Masks) -> Finding | None:
    """Elements of one mask that share their numbers."""
    if masks.x.numel() < MANY:
        return None
    for mask, waves in zip(masks.all, masks.first_spectra):
        happened = ""
        if masks.p == masks.dropped == 0.5 and (found := repeated_window(mask)):
            happened = _again(*found)
        elif distance := repeats(waves, len(mask), masks.dropped):
            known = {1: "Neighbours are kept or dropped together.", masks.columns: "Different rows have the same mask."}
            happened = known.get(distance, f"The mask repeats after {distance} elements.")
            if distance < 0:
                happened = f"Of two elements that are {-distance} apart, one is mostly kept, and one dropped."
        elif (total := reflected(waves, len(mask), masks.dropped)) is not None:
            happened = f"Whether element i is kept decides whether element {total} - i is."
        if happened:
            return Finding("same-mask", happened, *_ONE_NUMBER)
    return None


def _again(first: int, second: int) -> str:
    apart = f"{abs(second - first):,} elements apart"
    return f"From element {second:,} on, the mask repeats that from element {first:,} on: {apart}."


def repeated_window(mask: torch.Tensor) -> tuple[int, int] | None:
    """Two places from which on 2 * WINDOW decisions are the same, of a mask with p = 0.5.

    By chance, with probability n^2 / 2^129 at most: two windows agree with 2^-128, also if they overlap.
    """
    bits = mask.to(torch.int64)
    words = bits.clone()
    length = 1
    while length < WINDOW:  # a word of `length` decisions from each place
        words = (words[:-length] << length) + words[length:]
        length *= 2
    order = words.argsort(stable=True)
    same = words[order][1:] == words[order][:-1]
    first, second = order[:-1][same], order[1:][same]
    inside = second + WINDOW < len(words)
    first, second = first[inside], second[inside]
    again = words[first + WINDOW] == words[second + WINDOW]
    return (int(first[again][0]), int(second[again][0])) if bool(again.any()) else None


def far_places(elements: int, columns: int) -> tuple[int, ...]:
    """Elements from which on a large mask may be one that it has elsewhere: at powers of two, and where rows begin."""
    powers = [1 << bit for bit in range(10, 31)]
    places = [0, *powers, *(columns * row for row in (1, 2, 3)), *(columns + power for power in powers)]
    return tuple(sorted(place for place in set(places) if place + FAR_WINDOW <= elements))


def far_windows(
    at: torch.Tensor, kept: torch.Tensor, starts: tuple[int, ...], seed: int, seen: dict[bytes, tuple[int, int]]
) -> Finding | None:
    """Two of these places from which on the same elements are kept. at: which elements are known, ascending.

    seen: by what is kept, the seed and the place; those of other masks with the same p are there already.

    By chance, two agree with (p² + (1 - p)²)^FAR_WINDOW, which is 1e-52 at p = 1/4.
    """
    for start in starts:
        first = int(torch.searchsorted(at, start))
        window = kept[first : first + FAR_WINDOW]
        known = at[first : first + FAR_WINDOW] == torch.arange(start, start + FAR_WINDOW)[: len(window)]
        if len(window) < FAR_WINDOW or not bool(known.all()):
            continue
        of_seed, other = seen.setdefault(window.numpy().tobytes(), (seed, start))
        if of_seed != seed:
            return _alike_if_shifted(start - other)
        if other != start:
            return Finding("same-mask", _again(other, start), *_ONE_NUMBER)
    return None


def spectrum(mask: torch.Tensor, p: float) -> torch.Tensor:
    """The Fourier transform of kept - (1 - p), with room for every shift.

    It is numpy's: torch's prepares each transform anew, which takes longer than the transform.
    """
    return torch.from_numpy(np.fft.rfft((mask.double() - (1 - p)).numpy(), _room(len(mask))))


def _sums(waves: torch.Tensor, n: int) -> torch.Tensor:
    """What has this spectrum."""
    return torch.from_numpy(np.fft.irfft(waves.numpy(), _room(n)))


def _room(n: int) -> int:
    """A length of at least 2 n for which the transform is fast: a power of two, or an odd number times one."""
    return min(odd << (-(-2 * n // odd) - 1).bit_length() for odd in (1, 3, 5, 9, 15))


def repeats(waves: torch.Tensor, n: int, p: float) -> int | None:
    """The distance at which elements agree most, if that is more than chance allows; negative if they disagree.

    waves: the spectrum of a mask of n elements.

    The products at one distance have mean 0 and size at most c = max(p, 1 - p)^2, and are a martingale's steps: m of
    them exceed c sqrt(2 m ln(2 / alpha)) with probability at most alpha (Azuma).
    """
    sums = _sums(waves.conj() * waves, n)[1:n]
    terms = torch.arange(n - 1, 0, -1, dtype=torch.float64)
    bounds = max(p, 1 - p) ** 2 * torch.sqrt(2 * terms * math.log(2 * n / ALPHA))
    excess = sums.abs() / bounds
    most = int(excess.argmax())
    return (most + 1) * (-1 if sums[most] < 0 else 1) if bool((excess > 1).any()) else None


def reflected(waves: torch.Tensor, n: int, p: float) -> int | None:
    """The number t for which elements i and t - i agree, or disagree, more than chance allows (Hoeffding).

    Each pair stands in the sum twice, and an element that meets itself once.
    """
    sums = _sums(waves**2, n)[: 2 * n - 1]
    t = torch.arange(2 * n - 1, dtype=torch.float64)
    pairs = torch.minimum(t + 1, 2 * n - 1 - t) / 2
    c = max(p, 1 - p) ** 2
    excess = sums.abs() / (2 * c * torch.sqrt(2 * pairs * math.log(4 * n / ALPHA)) + c)
    return int(excess.argmax()) if bool((excess > 1).any()) else None


def _shared_number(masks: Masks) -> Finding | None:
    """Two elements, near or far, that are kept, and dropped, by the same seeds. With few seeds, chance does that."""
    n, p = masks.x.numel(), masks.dropped
    if n**2 / 2 * (p * p + (1 - p) * (1 - p)) ** len(masks.all) > ALPHA:
        return None
    words = sum(mask.to(torch.int64) << bit for bit, mask in enumerate(masks.all[:63]))
    _, word, count = torch.unique(words, return_inverse=True, return_counts=True)
    shared = (count[word] > 1).nonzero().flatten()
    if not len(shared):
        return None
    first, second = (word == word[shared[0]]).nonzero().flatten()[:2].tolist()
    return Finding(
        "same-mask",
        f"Elements {first} and {second} are kept by the same seeds, and dropped by the same seeds; {len(shared)} of "
        f"{n} elements have such a partner.",
        "They share one random number, so their masks are not independent.",
        "give every element another offset: tl.rand(seed, offsets), with the offsets of the element.",
    )


def _fixed_element(masks: Masks) -> Finding | None:
    """An element that too many seeds keep, or too few."""
    kept, seeds, n = torch.stack(masks.all).sum(0), len(masks.all), masks.x.numel()
    for element in (int(kept.argmin()), int(kept.argmax())):
        if not plausible(k := int(kept[element]), seeds, 1 - masks.dropped, ALPHA / n):
            happened = f"Element {element} is kept by {k} of {seeds} seeds."
            return Finding("seed-ignored", happened, "Its random number hardly depends on the seed.", _GIVE_SEED)
    return None


# -- seeds -------------------------------------------------------------------------------------------------

_GIVE_SEED = "pass the seed to the generator: tl.rand(seed, offsets)."


def _unsteady(call, seed: int) -> Finding:
    if call.part == "value":
        return Finding("seed-ignored", f"Seed {seed} gave another mask in the value beside a gradient.",
                       "jax.value_and_grad takes the value from the forward rule of jax.custom_vjp.",
                       "let the forward rule return what the function itself returns, for the same arguments in the "
                       "same order.")
    how = "under jax.jit" if call.call.jit else "in a second call"
    return Finding("seed-ignored", f"Seed {seed} gave another mask {how}.",
                   "The mask must depend only on the value of the seed and on the element. In the kernel, an array "
                   "argument is a pointer: it holds an address, not the value.",
                   "load the value with seed = tl.load(seed_ptr), then call tl.rand(seed, offsets).")


def _alike_for_two_seeds(masks: Masks) -> Finding | None:
    """Two masks that agree, or disagree, more than independent ones do (Hoeffding)."""
    p, seeds, n = masks.dropped, list(masks.of_seed), masks.x.numel()
    centred = torch.stack(masks.all).float() - (1 - p)
    sums = (centred @ centred.T).double().abs().fill_diagonal_(0)
    pairs = max(len(seeds) * (len(seeds) - 1) // 2, 1)
    if float(sums.max()) <= max(p, 1 - p) ** 2 * math.sqrt(2 * n * math.log(2 * pairs / ALPHA)) + 1e-5 * n:
        return None
    first, second = divmod(int(sums.argmax()), len(seeds))
    share = float((masks.all[first] == masks.all[second]).double().mean())
    what = "the same mask" if share == 1 else f"masks that agree in {share:.1%}"
    return Finding(
        "seed-ignored",
        f"Seeds {seeds[first]} and {seeds[second]} gave {what}.",
        "All 31 bits of a seed must count. Two calls, layers or steps would drop the same elements.",
        "pass the seed as an integer to the generator: tl.rand(seed, offsets). float32 holds integers up to 2²⁴.",
    )


def shifted(one: torch.Tensor, two: torch.Tensor, n: int, p: float) -> int | None:
    """The shift at which two masks of n elements correlate most, if by more than CORRELATED there, from their spectra.

    Two right masks do so at one of 2 n shifts with a probability of at most `by_chance` (Hoeffding: a term has mean 0
    and moves in a range of max(p, 1 - p)^2 + p (1 - p)). If that is more than ALPHA, nothing is found.
    """
    room, spread = _room(n), p * (1 - p)
    by_chance = 4 * n * math.exp(-2 * n * (CORRELATED * spread / (max(p, 1 - p) ** 2 + spread)) ** 2)
    if by_chance > ALPHA:
        return None
    sums = _sums(one.conj() * two, n).abs()
    most = int(sums.argmax())
    return (most if most < n else most - room) if float(sums[most]) > CORRELATED * n * spread else None


def _shifted(masks: Masks) -> Finding | None:
    """Two seeds with one stream of numbers. The first seed is compared with every other one."""
    n, p = masks.x.numel(), masks.dropped
    spectra = itertools.chain(masks.first_spectra, (spectrum(mask, p) for mask in masks.all[2:]))
    first = next(spectra)
    shifts = (shifted(first, other, n, p) for other in spectra)
    if (shift := next((s for s in shifts if s is not None), None)) is None:
        return None
    return _alike_if_shifted(shift)


def _alike_if_shifted(shift: int) -> Finding:
    return Finding(
        "seed-ignored",
        f"The masks of two seeds are alike if one of them is shifted by {many(abs(shift), 'element', 'elements')}.",
        "All seeds use the same random numbers, from another place on. Masks of different layers and steps are not "
        "independent then.",
        "give tl.rand the seed as it is, and to each element an offset of its own: tl.rand(seed, offsets).",
    )
