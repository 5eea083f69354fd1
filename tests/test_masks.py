"""What is said about the values, masks and gradients of leaky dropout, for mistakes made in torch: no kernel runs."""

import math
import random
from types import SimpleNamespace

import pytest
import torch

from autograder.diagnosis import Observation, diagnose
from autograder.diagnosis.observation import Comparison
from autograder.exercises import EXERCISES, masks
from autograder.exercises.dropout import BOUNDS, reference, scale
from autograder.exercises.spec import Strided

# -- the bounds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "q"), [(1, 0.5), (131, 0.7), (5467, 0.5), (67334, 0.7)])
def test_a_right_rate_is_refused_less_often_than_alpha(n, q):
    """The exact binomial tail beyond the accepted counts, from logarithms of factorials."""
    refused = [k for k in range(n + 1) if not masks.plausible(k, n, q)]
    log = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(q) + (n - k) * math.log(1 - q)
        for k in refused
    ]
    assert math.fsum(map(math.exp, log)) <= masks.ALPHA
    low, high = masks.plausible_counts(n, q)
    assert refused == [*range(low), *range(high + 1, n + 1)]


def test_p_rounded_to_16_bits_shows_in_the_case_that_is_made_for_it():
    case = next(case for case in EXERCISES["leaky_dropout"].cases if "3 million" in case.name)
    for seed in range(5):
        x, p, _ = case.make(torch.Generator().manual_seed(seed))
        assert round(p * 2**16) == 0 and not masks.plausible(x.values.numel(), x.values.numel(), 1 - p)


# -- masks ---------------------------------------------------------------------------------------------------------


def uniform(seed: int, n: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(random.Random(int(seed)).getrandbits(62))
    return torch.rand(n, generator=generator, dtype=torch.float64)


def judged(numbers, name: str, rule=lambda u, p: u >= p, seed=11) -> str | None:
    """What is said of masks made of these numbers in one case of leaky_dropout."""
    exercise = EXERCISES["leaky_dropout"]
    case = next(case for case in exercise.cases if name in case.name)
    x, p, seeds = case.make(torch.Generator().manual_seed(seed))
    calls = []
    for call in exercise.calls(case):
        given, n = seeds.values[call.variant], x.values.numel()
        got = rule(numbers(given, n), p).reshape(x.values.shape) * x.values
        seen = SimpleNamespace(values=(x.values, p, given, got))
        calls.append(SimpleNamespace(case=case, call=call, part="result", seen=seen))
    found = masks.judge_masks(calls)
    return found and found.slug


CASES = ("7 × 781", "p near 0.28", "p near 0.0015", "seeds", "1 million", "3 million", "near 1", "p = 1", "1 × 1")


@pytest.mark.parametrize("name", CASES)
def test_right_masks_pass(name):
    for seed in range(3):
        assert judged(uniform, name, seed=seed) is None


NUMBERS = {
    "one seed": (lambda seed, n: uniform(0, n), "7 × 781", "seed-ignored"),
    "256 seeds": (lambda seed, n: uniform(seed % 256, n), "seeds", "seed-ignored"),
    "16 bits": (lambda seed, n: uniform(seed & 0xFFFF, n), "seeds", "seed-ignored"),
    "the upper bits": (lambda seed, n: uniform(seed >> 8, n), "seeds", "seed-ignored"),
    "without one bit": (lambda seed, n: uniform(seed & ~(1 << 19), n), "seeds", "seed-ignored"),
    "folded": (lambda seed, n: uniform((seed ^ seed >> 16) & 0xFFFF, n), "seeds", "seed-ignored"),
    "modulo a prime": (lambda seed, n: uniform(seed % 65521, n), "seeds", "seed-ignored"),
    "as float32": (lambda seed, n: uniform(int(torch.tensor(seed, dtype=torch.float32)), n), "seeds", "seed-ignored"),
    "shifted stream": (lambda seed, n: uniform(0, n + seed % 512)[seed % 512 :], "seeds", "seed-ignored"),
    "one fixed element": (lambda seed, n: uniform(seed, n).index_fill(0, torch.tensor([99]), 0.9), "seeds",
                          "seed-ignored"),
    "one block again and again": (lambda seed, n: uniform(seed, 256).repeat(n // 256 + 1)[:n], "7 × 781", "same-mask"),
    "pairs": (lambda seed, n: uniform(seed, n // 2 + 1).repeat_interleave(2)[:n], "7 × 781", "same-mask"),
    "one for all": (lambda seed, n: uniform(seed, 1).expand(n), "seeds", "same-mask"),
    "far away": (lambda seed, n: uniform(seed, 1 << 20).repeat(2)[:n], "1 million", "same-mask"),
    "one window far away": (lambda seed, n: uniform(seed, n).index_copy(0, torch.arange(777_000, 777_300),
                                                                        uniform(seed, 5_300)[5_000:]), "1 million",
                            "same-mask"),
    "mirrored": (lambda seed, n: torch.cat([uniform(seed, n - n // 2), uniform(seed, n // 2).flip(0)]), "1 million",
                 "same-mask"),
    "two elements anywhere": (lambda seed, n: uniform(seed, n)[torch.arange(n) * (torch.arange(n) != 60_000)
                                                               + 123 * (torch.arange(n) == 60_000)], "seeds",
                              "same-mask"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", NUMBERS)
def test_numbers_that_are_not_independent_are_seen(mistake):
    numbers, name, slug = NUMBERS[mistake]
    assert judged(numbers, name) == slug


RATES = {
    "kept below p": (lambda u, p: u < p, "p near 0.28"),
    "always a half": (lambda u, p: u >= 0.5, "p near 0.28"),
    "percent": (lambda u, p: u >= round(100 * p) / 100, "p near 0.0015"),
    "8 bits": (lambda u, p: u >= round(256 * p) / 256, "3 million"),
    "16 bits": (lambda u, p: (u * 65536).floor() >= math.floor(65536 * p), "3 million"),
    "bfloat16": (lambda u, p: u >= float(torch.tensor(p).bfloat16()), "near 1"),
    "some at p = 1": (lambda u, p: u > 0.99, "p = 1"),
}


@pytest.mark.parametrize("mistake", RATES)
def test_a_wrong_rate_is_seen(mistake):
    rule, name = RATES[mistake]
    assert judged(uniform, name, rule) == "wrong-rate"


# -- values --------------------------------------------------------------------------------------------------------


def leaky(x):
    return torch.where(x >= 0, x, 0.01 * x)


def slope(x):
    return torch.where(x >= 0, 1.0, 0.01)


def told(exercise: str, compute, gradient=False) -> tuple[str | None, str]:
    """The name and the words for one output of 4,000 elements at p near 0.28. compute(x, p, kept, dy)."""
    exercise = EXERCISES[exercise]
    generator = torch.Generator().manual_seed(5)
    x, dy = torch.randn(2, 4000, generator=generator)
    p, kept = 0.2837, torch.rand(4000, generator=generator) >= 0.2837
    y = (kept * leaky(x) / (1 - p)).float()
    got = compute(x.double(), p, kept, dy.double()).float()
    expected = reference(x, p, 7, y if gradient else got)
    if gradient:
        expected = torch.where(kept, dy.double() * slope(x) * scale(p), 0.0)
    given = [x, p, 7, *((y, dy, got) if gradient else (got,))]
    seen = Observation(
        exercise,
        exercise.cases[0],
        tuple(Strided(t) if isinstance(t, torch.Tensor) else t for t in given),
        "interpreter",
        comparison=Comparison(got, expected, BOUNDS[torch.float32]),
    )
    found = diagnose(seen)
    return (found.slug, found.message) if found else (None, "")


FORWARD = {
    "right": (lambda x, p, kept, dy: kept * leaky(x) / (1 - p), None, ""),
    "nothing dropped": (lambda x, p, kept, dy: leaky(x), "wrong-rate", "No element is dropped"),
    "not scaled": (lambda x, p, kept, dy: kept * leaky(x), "not-scaled", "expected sum"),
    "times 1 - p": (lambda x, p, kept, dy: kept * leaky(x) * (1 - p), "constant-factor", "1 - p"),
    "divided by p": (lambda x, p, kept, dy: kept * leaky(x) / p, "constant-factor", "1 / p"),
    "p for what is kept": (lambda x, p, kept, dy: (torch.arange(len(x)) % 10000 < 0.2837 * 4000) * leaky(x) / p,
                           "wrong-rate", "taken for"),
    "rounded": (lambda x, p, kept, dy: kept * leaky(x) / (1 - 0.28), "wrong-rate", "1/100"),
    "no leaky relu": (lambda x, p, kept, dy: kept * x / (1 - p), "wrong-value", "without leaky ReLU"),
    "another slope": (lambda x, p, kept, dy: kept * torch.where(x >= 0, x, 0.07 * x) / (1 - p), "wrong-value",
                      "slope of negative"),
    "dropped are left": (lambda x, p, kept, dy: torch.where(kept, leaky(x) / (1 - p), leaky(x)), "wrong-value",
                         "Dropped elements still hold"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", FORWARD)
def test_a_wrong_forward_pass_gets_its_name(mistake):
    compute, slug, words = FORWARD[mistake]
    found, message = told("leaky_dropout", compute)
    assert found == slug and words in message, message


BACKWARD = {
    "right": (lambda x, p, kept, dy: kept * dy * slope(x) / (1 - p), None, ""),
    "not scaled": (lambda x, p, kept, dy: kept * dy * slope(x), "not-scaled", "derivative"),
    "scaled twice": (lambda x, p, kept, dy: kept * dy * slope(x) / (1 - p) ** 2, "constant-factor", "twice"),
    "negative": (lambda x, p, kept, dy: -1 * kept * dy * slope(x) / (1 - p), "constant-factor", "-1 times"),
    "no mask": (lambda x, p, kept, dy: dy * slope(x) / (1 - p), "wrong-value", "Dropped elements get"),
    "inverted": (lambda x, p, kept, dy: ~kept * dy * slope(x) / (1 - p), "wrong-rate", "wrong way round"),
    "no slope": (lambda x, p, kept, dy: kept * dy / (1 - p), "wrong-value", "0.01 where x is negative"),
    "relu": (lambda x, p, kept, dy: kept * dy * (x >= 0) / (1 - p), "wrong-value", "that is ReLU"),
    "times leaky": (lambda x, p, kept, dy: kept * dy * leaky(x) / (1 - p), "wrong-value", "multiplied by leaky(x)"),
    "swapped": (lambda x, p, kept, dy: kept * x * slope(dy) / (1 - p), "wrong-value", "changed places"),
    "dy ignored": (lambda x, p, kept, dy: kept * slope(x) / (1 - p), "wrong-value", "ignored"),
    "another mask": (lambda x, p, kept, dy: kept.roll(1) * dy * slope(x) / (1 - p), "seed-ignored", "another mask"),
}


@pytest.mark.parametrize("mistake", BACKWARD)
def test_a_wrong_backward_pass_gets_its_name(mistake):
    compute, slug, words = BACKWARD[mistake]
    found, message = told("leaky_dropout_grad", compute, gradient=True)
    assert found == slug and words in message, message


def test_windows_of_a_large_mask_that_come_again():
    """Of programs of 1024 elements: two that share their numbers are found, far apart or with different seeds."""
    kept = torch.rand(1024, generator=torch.Generator().manual_seed(1)) >= 0.25
    other = torch.rand(1024, generator=torch.Generator().manual_seed(2)) >= 0.25
    starts = masks.far_places(1 << 25, 631)
    at = torch.cat([torch.arange(1024) + start for start in (0, 1 << 22, 1 << 24)])
    found = masks.far_windows(at, torch.cat([kept, other, kept]), starts, 1, {})
    assert found.slug == "same-mask" and f"{1 << 24:,}" in found.happened
    assert masks.far_windows(at[:1024], kept, starts, 1, seen := {}) is None
    assert masks.far_windows(at[:1024], other, starts, 2, seen) is None
    found = masks.far_windows(at[1024:2048], kept, starts, 3, seen)
    assert found.slug == "seed-ignored" and f"{1 << 22:,}" in found.happened.replace("4194304", "4,194,304")
