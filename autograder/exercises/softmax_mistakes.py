"""The known misconceptions about softmax: what each of them computes, what it means and what to try."""

from __future__ import annotations

import torch

from .spec import Mistake


def _exponentials(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(x.double() - x.double().amax(1, keepdim=True))


def _sum(x: torch.Tensor) -> torch.Tensor:
    return x.sum(1, keepdim=True)


def _running(rescale, new_block_too=False, largest=torch.maximum):
    """A sum that is kept from block to block; rescale(m, m_new) is the factor when the maximum grows.

    largest: the number that a block subtracts, of the maximum so far and that of the block.
    """

    def compute(x, block):
        x = x.double()
        m, d = torch.full((len(x), 1), -torch.inf, dtype=torch.float64), torch.zeros(len(x), 1, dtype=torch.float64)
        for part in x.split(block, dim=1):
            of_part = part.amax(1, keepdim=True)
            m_new = torch.maximum(m, of_part)
            factor = torch.where(d > 0, rescale(m, m_new), 1.0)
            d = d * factor + _sum(torch.exp(part - largest(m, of_part))) * (factor if new_block_too else 1.0)
            m = m_new
        return torch.exp(x - m) / d

    return compute


def _lanes_rescaled(sign: float):
    """Each lane's sum uses the maximum of that lane, and exp(sign * (lane_max - row_max)) rescales it.

    A lane without elements is NaN, unless nothing is rescaled.
    """

    def compute(x, block):
        lanes = torch.nn.functional.pad(x.double(), (0, -x.shape[1] % block), value=-torch.inf)
        lanes = lanes.unflatten(1, (-1, block))
        largest = lanes.amax(1)
        sums = torch.exp(lanes - largest[:, None]).sum(1).nan_to_num(0.0)
        if sign:
            sums = sums * torch.exp(sign * (largest - largest.amax(1, keepdim=True)))
        return _exponentials(x) / _sum(sums)

    return compute


def _zeros_in_the_sum(x, block):
    """exp(0 - max) of the masked lanes is added to the sum. The maximum is right."""
    m = x.double().amax(1, keepdim=True)
    return _exponentials(x) / (_sum(_exponentials(x)) - x.shape[1] % -block * torch.exp(-m))


def _zero_wins_maximum(x, block):
    """`other=0` only where the maximum is computed. The result is right as long as exp(x - 0) is not 0."""
    x = x.float()
    m = torch.clamp(x.amax(1, keepdim=True), min=0.0) if x.shape[1] % block else x.amax(1, keepdim=True)
    return torch.exp(x - m) / _sum(torch.exp(x - m))


def _statistics_of_the_first_block(x, block):
    first = x.float()[:, :block]
    m = first.amax(1, keepdim=True)
    return torch.exp(x.float() - m) / _sum(torch.exp(first - m))


def _statistics_of_row_0(x):
    e = torch.exp(x.double() - x[:1].double().amax(1, keepdim=True))
    return e / _sum(e[:1])


def _exponent_divided(x):
    m = x.double().amax(1, keepdim=True)
    return torch.exp(x.double() - m / _sum(_exponentials(x)))


MISTAKES = (
    Mistake("missing-rescale", _running(lambda m, m_new: torch.ones_like(m)),
            "The running sum is not rescaled: the sums of earlier blocks were computed with an older, smaller maximum. "
            "If a line rescales it, `m = m_new` stands above that line, and then exp(m - m_new) is 1.",
            "When the maximum grows from m to m_new, multiply the sum so far by exp(m - m_new) before you add the "
            "block. After that comes m = m_new, as the last line of the loop's body."),
    Mistake("missing-rescale", _running(lambda m, m_new: torch.exp(m_new - m)),
            "The running sum is rescaled the wrong way round, by exp(m_new - m).",
            "The new maximum is larger, so the factor must make the sum smaller: exp(m - m_new)."),
    Mistake("missing-rescale", _running(lambda m, m_new: torch.exp(m - m_new), new_block_too=True),
            "The new block was rescaled together with the sum so far, but its exponentials already use the new "
            "maximum.", "Rescale the sum so far, then add the block: d * exp(m - m_new) + sum(exp(x - m_new))."),
    Mistake("missing-rescale", _running(lambda m, m_new: torch.exp(m - m_new), largest=lambda m, of_part: of_part),
            "Each block subtracts its own maximum before exp, and the sum so far uses another one.",
            "Compute the new maximum first, m_new, and add up exp(x - m_new)."),
    Mistake("missing-rescale", _lanes_rescaled(0.0),
            "The sums of the lanes were added without rescaling, but each sum uses the maximum of its own lane.",
            "Rescale before you add: sum(lane_sum * exp(lane_max - row_max))."),
    Mistake("missing-rescale", _lanes_rescaled(-1.0),
            "The sums of the lanes were rescaled the wrong way round, by exp(row_max - lane_max).",
            "The row's maximum is larger, so the factor must make the sum smaller: exp(lane_max - row_max)."),
    Mistake("wrong-other-value", _zero_wins_maximum,
            "The maximum includes a number that is in no element, from a masked-off lane, as its initial value or from "
            "a tl.where, or no maximum was subtracted. In a row of lower numbers, every exponential is then 0.",
            "Load with other=-float('inf') and keep it, begin the maximum with -float('inf'), and subtract it before "
            "exp. What replaces -inf before exp must not become the maximum so far.", known_by_constant=True),
    Mistake("wrong-other-value", _zeros_in_the_sum, "The masked-off lanes were added to the sum as exp(0 - max).",
            "Masked-off lanes must be -inf when exp is taken, so that they add exp(-inf) = 0: load with "
            "other=-float('inf'), and let no later line put 0 there."),
    Mistake("not-normalised", lambda x: _exponentials(x) / _sum(torch.exp(x.double())),
            "The output subtracts the maximum, but the sum does not.",
            "Add up exp(x - max), with the same maximum as in the output."),
    Mistake("not-normalised", lambda x: _exponentials(x) / (1.0 + _sum(_exponentials(x))),
            "The sum is 1 too large: it begins at 1.", "Begin the sum at 0.0."),
    Mistake("not-normalised", _statistics_of_the_first_block,
            "The maximum and the sum are those of the first block only.",
            "The loop that computes them must reach n_cols: range(0, n_cols, BLOCK_SIZE)."),
    Mistake("not-normalised",
            lambda x, block: torch.cat([torch.softmax(part, 1) for part in x.double().split(block, dim=1)], 1),
            "Each block was normalised separately, as if it were a whole row.",
            "Compute the maximum and the sum of the whole row: keep them from block to block."),
    Mistake("wrong-program-id", _statistics_of_row_0, "Every row was normalised with the maximum and the sum of row 0.",
            "A row begins at in_ptr + pid * row_stride: use this address in every load, not only in the last one."),
    Mistake("wrong-value", _exponent_divided,
            "The maximum was divided by the sum, and the exponential was not: / binds tighter than -.",
            "Divide what exp returns: exp(x - max) / sum."),
    Mistake("wrong-value", lambda x: torch.softmax(x.double() * 0.6931471805599453, -1),
            "The exponentials have base 2: tl.exp2(x) is 2 to the power of x.",
            "Use tl.exp, or exp(x) = exp2(x * log2(e)), with log2(e) = 1.4426950408889634."),
)  # fmt: skip
