"""What is said about the values, masks and gradients of leaky dropout, for mistakes made in torch: no kernel runs."""

import random
from types import SimpleNamespace

import pytest
import torch

from autograder.exercises import dropout_rules, find
from autograder.exercises.spec import UNUSUAL, Strided, Tag, Varying


def uniform(seed: int, n: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(random.Random(int(seed)).getrandbits(62))
    return torch.rand(n, generator=generator, dtype=torch.float64)


def leaky(x):
    return torch.where(x >= 0, x, 0.01 * x)


def right(x, p, u):
    return torch.where(u >= p, leaky(x) / (1 - p), 0.0)


def slope(x):
    return torch.where(x >= 0, 1.0, 0.01)


def right_gradient(x, w, p, u):
    return torch.where(u >= p, w * slope(x) / (1 - p), 0.0)


def named(forward=right, backward=None, numbers=uniform, backward_numbers=None) -> tuple[str | None, str]:
    """The slug and the message of the finding that the judge would tell first."""
    exercise = find("leaky_dropout_grad" if backward else "leaky_dropout")
    generator = torch.Generator().manual_seed(11)
    findings = []
    for case in exercise.cases:
        if Tag.SEEDS in case.about and numbers is uniform:  # the slowest case
            continue
        arguments = case.make(generator)
        x, p, seeds = arguments[0].values if isinstance(arguments[0], Strided) else arguments[0], *arguments[1:3]
        cotangent = arguments[3].values if backward else None
        calls = []
        for call in exercise.calls(case):
            seed = seeds.values[call.variant % len(seeds.values)] if isinstance(seeds, Varying) else seeds
            shape, exact = x.shape, x.double()
            u = (backward_numbers if call.grad and backward_numbers else numbers)(seed, x.numel()).reshape(shape)
            got = backward(exact, cotangent.double(), p, u) if call.grad else forward(exact, p, u)
            calls.append(
                SimpleNamespace(case=case, call=call, got=got.to(x.dtype), arguments=(x, p, seed), cotangent=cotangent)
            )
        if found := exercise.judge_calls([call for call in calls if call.got.numel()]) if x.numel() else None:
            findings.append((Tag.SHORT in case.about, bool(case.about & UNUSUAL), found.slug.rank, found))
    found = min(findings, key=lambda each: each[:3])[3] if findings else None
    return (found.slug, found.message) if found else (None, "")


def test_right_answers_pass():
    assert named() == (None, "")
    assert named(backward=right_gradient) == (None, "")


def with_p(change):
    return lambda x, p, u: right(x, change(p), u)


FORWARD = {
    "kept below p": (lambda x, p, u: torch.where(u < p, leaky(x) / (1 - p), 0.0), "wrong-rate"),
    "p is the probability of being kept": (lambda x, p, u: torch.where(u < p, leaky(x) / p, 0.0), "wrong-rate"),
    "one minus p everywhere": (with_p(lambda p: 1 - p), "wrong-rate"),
    "rounded to tenths": (with_p(lambda p: round(p, 1)), "wrong-rate"),
    "rounded to a percentage": (with_p(lambda p: round(p, 2)), "wrong-rate"),
    "rounded to quarters": (with_p(lambda p: round(4 * p) / 4), "wrong-rate"),
    "always a half": (with_p(lambda p: 0.5), "wrong-rate"),
    "mask by sixteenths": (
        lambda x, p, u: torch.where(torch.floor(16 * u) / 16 >= p, leaky(x) / (1 - p), 0.0),
        "wrong-rate",
    ),
    "dropped twice": (lambda x, p, u: torch.where(u >= p + p * (1 - p), leaky(x) / (1 - p), 0.0), "wrong-rate"),
    "nothing dropped": (lambda x, p, u: leaky(x), "wrong-rate"),
    "not scaled": (lambda x, p, u: torch.where(u >= p, leaky(x), 0.0), "not-scaled"),
    "times 1 - p": (lambda x, p, u: torch.where(u >= p, leaky(x) * (1 - p), 0.0), "constant-factor"),
    "divided by p": (lambda x, p, u: torch.where(u >= p, leaky(x) / p, 0.0), "constant-factor"),
    "scaled twice": (lambda x, p, u: torch.where(u >= p, leaky(x) / (1 - p) ** 2, 0.0), "constant-factor"),
    "always times 2": (lambda x, p, u: torch.where(u >= p, leaky(x) * 2, 0.0), "constant-factor"),
    "relu": (lambda x, p, u: right(x.clamp(min=0), p, u), "wrong-value"),
    "no leaky relu": (lambda x, p, u: torch.where(u >= p, x / (1 - p), 0.0), "wrong-value"),
    "slope of a tenth": (
        lambda x, p, u: torch.where(u >= p, torch.where(x >= 0, x, 0.1 * x) / (1 - p), 0.0),
        "wrong-value",
    ),
    "slope on the positive side": (
        lambda x, p, u: torch.where(u >= p, torch.where(x < 0, x, 0.01 * x) / (1 - p), 0.0),
        "wrong-value",
    ),
    "only positive ones scaled": (
        lambda x, p, u: torch.where(u >= p, torch.where(x >= 0, x / (1 - p), 0.01 * x), 0.0),
        "wrong-value",
    ),
    "only negative ones scaled": (
        lambda x, p, u: torch.where(u >= p, torch.where(x >= 0, x, 0.01 * x / (1 - p)), 0.0),
        "wrong-value",
    ),
    "dropped ones left": (lambda x, p, u: torch.where(u >= p, leaky(x) / (1 - p), leaky(x)), "wrong-value"),
    "scaled before, dropped ones left": (lambda x, p, u: torch.where(u >= p, leaky(x) / (1 - p), x), "wrong-value"),
    "product with the mask": (lambda x, p, u: (u >= p) * leaky(x) / torch.tensor(1 - p), "nan"),
    "added and subtracted": (
        lambda x, p, u: torch.where(x.isinf(), right(x, p, u), x.float() + (right(x, p, u).float() - x.float())),
        "low-precision",
    ),
    "epsilon in the scale": (lambda x, p, u: torch.where(u >= p, leaky(x) / (1 - p + 0.01), 0.0), "constant-factor"),
    "only small ones can be kept": (lambda x, p, u: torch.where(x.abs() < 1.5, right(x, p, u), 0.0), "wrong-rate"),
}


@pytest.mark.parametrize("mistake", FORWARD)
def test_a_wrong_forward_pass_gets_its_name(mistake):
    forward, slug = FORWARD[mistake]
    found, message = named(forward)
    assert found == slug, message


NUMBERS = {
    "one seed": (lambda seed, n: uniform(0, n), "seed-ignored"),
    "256 seeds": (lambda seed, n: uniform(seed % 256, n), "seed-ignored"),
    "ten seeds": (lambda seed, n: uniform(seed % 10, n), "seed-ignored"),
    "parity": (lambda seed, n: uniform(seed % 2, n), "seed-ignored"),
    "as float32": (lambda seed, n: uniform(int(torch.tensor(seed, dtype=torch.float32)), n), "seed-ignored"),
    "shifted stream": (lambda seed, n: uniform(0, n + seed % 512)[seed % 512 :], "seed-ignored"),
    "one block again and again": (lambda seed, n: uniform(seed, 256).repeat(n // 256 + 1)[:n], "same-mask"),
    "100 again and again": (lambda seed, n: uniform(seed, 100).repeat(n // 100 + 1)[:n], "same-mask"),
    "pairs": (lambda seed, n: uniform(seed, n // 2 + 1).repeat_interleave(2)[:n], "same-mask"),
    "one for a program": (lambda seed, n: uniform(seed, n // 1024 + 1).repeat_interleave(1024)[:n], "same-mask"),
    "one for all": (lambda seed, n: uniform(seed, 1).expand(n), "same-mask"),
    "two of four": (
        lambda seed, n: uniform(seed, n + 1024)[: (n // 1024 + 1) * 512].reshape(-1, 1, 512).repeat(1, 2, 1)
        .flatten()[:n],
        "same-mask",
    ),
    "one element kept": (lambda seed, n: (torch.arange(n) == 0).double() * 0.999, "wrong-rate"),
    "alternating": (lambda seed, n: ((torch.arange(n) + seed) % 2).double() * 0.999, "same-mask"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", NUMBERS)
def test_wrong_random_numbers_get_their_name(mistake):
    numbers, slug = NUMBERS[mistake]
    found, message = named(numbers=numbers)
    assert found == slug, message


BACKWARD = {
    "not scaled": (lambda x, w, p, u: torch.where(u >= p, w * slope(x), 0.0), "not-scaled"),
    "times 1 - p": (lambda x, w, p, u: torch.where(u >= p, w * slope(x) * (1 - p), 0.0), "constant-factor"),
    "divided by p": (lambda x, w, p, u: torch.where(u >= p, w * slope(x) / p, 0.0), "constant-factor"),
    "scaled twice": (lambda x, w, p, u: torch.where(u >= p, w * slope(x) / (1 - p) ** 2, 0.0), "constant-factor"),
    "negative": (lambda x, w, p, u: -right_gradient(x, w, p, u), "constant-factor"),
    "no mask": (lambda x, w, p, u: w * slope(x) / (1 - p if p < 1 else 1), "wrong-value"),
    "no mask, no scale": (lambda x, w, p, u: w * slope(x), "wrong-value"),
    "as it comes in": (lambda x, w, p, u: w, "wrong-value"),
    "inverted": (lambda x, w, p, u: torch.where(u < p, w * slope(x) / (1 - p), 0.0), "wrong-rate"),
    "no slope": (lambda x, w, p, u: torch.where(u >= p, w / (1 - p), 0.0), "wrong-value"),
    "no slope, no scale": (lambda x, w, p, u: torch.where(u >= p, w, 0.0), "wrong-value"),
    "relu": (lambda x, w, p, u: right_gradient(x, w, p, u) * (x >= 0), "wrong-value"),
    "slope of a tenth": (
        lambda x, w, p, u: torch.where(u >= p, w * torch.where(x >= 0, 1.0, 0.1) / (1 - p), 0.0),
        "wrong-value",
    ),
    "slope by the sign of dy": (lambda x, w, p, u: right_gradient(w, w, p, u), "wrong-value"),
    "slope swapped": (lambda x, w, p, u: right_gradient(-x, w, p, u), "wrong-value"),
    "incoming gradient ignored": (lambda x, w, p, u: right_gradient(x, torch.ones_like(w), p, u), "wrong-value"),
    "times x": (lambda x, w, p, u: right_gradient(x, w * x, p, u), "wrong-value"),
    "the forward pass again": (lambda x, w, p, u: right(x, p, u), "wrong-value"),
    "x and dy swapped": (lambda x, w, p, u: right_gradient(w, x, p, u), "wrong-value"),
    "zero": (lambda x, w, p, u: torch.zeros_like(w), "not-attempted"),
    "product with the mask": (lambda x, w, p, u: (u >= p) * w * slope(x) / torch.tensor(1 - p), "nan"),
}


@pytest.mark.parametrize("mistake", BACKWARD)
def test_a_wrong_backward_pass_gets_its_name(mistake):
    backward, slug = BACKWARD[mistake]
    found, message = named(backward=backward)
    assert found == slug, message


def test_another_mask_in_the_backward_pass_is_told():
    found, message = named(backward=right_gradient, backward_numbers=lambda seed, n: uniform(seed + 1, n))
    assert found == "seed-ignored" and "another mask" in message


def test_a_wrong_forward_pass_is_not_blamed_on_the_gradient():
    found, message = named(forward=lambda x, p, u: torch.zeros_like(x), backward=right_gradient)
    assert found == "not-attempted" and "forward pass gives zeros only" in message and "leaky_dropout first" in message
    for mistake in ("kept below p", "relu", "nothing dropped"):
        forward, slug = FORWARD[mistake]
        found, message = named(forward=forward, backward=right_gradient)
        assert found == slug and message.startswith("The forward pass is not right yet."), (mistake, found, message)


def test_dropout_rules_judge_both_exercises():
    assert find("leaky_dropout").judge_calls is find("leaky_dropout_grad").judge_calls is dropout_rules.judge_calls
