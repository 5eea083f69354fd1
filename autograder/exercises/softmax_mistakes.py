"""The known misconceptions about softmax: what each of them computes, what it means and what to try."""

from __future__ import annotations

import torch

from .spec import Mistake, rows_one_apart


def _without_rescale(x, block):
    return _running(x, block, lambda m_old, m_new: torch.ones_like(m_old))


def _rescale_upside_down(x, block):
    return _running(x, block, lambda m_old, m_new: torch.exp(m_new - m_old))


def _rescale_of_everything(x, block):
    return _running(x, block, lambda m_old, m_new: torch.exp(m_old - m_new), new_block_too=True)


def _rescale_of_everything_from_minus_infinity(x, block):
    """exp(-inf - m) is 0: the first block is lost."""
    return _running(x, block, lambda m_old, m_new: torch.exp(m_old - m_new), new_block_too=True, peeled=False)


def _infinite_rescale(x):
    """The first block computes exp(m - (-inf)) * 0, which is NaN. Only for rows where exp itself cannot overflow."""
    return torch.full_like(x, torch.nan) if bool((x.abs() < 80).all()) else torch.softmax(x.double(), 1)


def _running(x, block, rescale, new_block_too=False, peeled=True):
    x = x.double()
    m = torch.full((len(x), 1), -torch.inf, dtype=torch.float64)
    d = torch.zeros(len(x), 1, dtype=torch.float64)
    for part in x.split(block, dim=1):
        m_new = torch.maximum(m, part.amax(1, keepdim=True))
        factor = torch.where(d > 0, rescale(m, m_new), 1.0) if peeled else rescale(m, m_new)
        added = torch.exp(part - m_new).sum(1, keepdim=True)
        d = d * factor + added * (factor if new_block_too else 1.0)
        m = m_new
    return torch.exp(x - m) / d


def _padded_with_zeros(x, block):
    """`other=0` in the load: the lanes past the end of the row take part as zeros."""
    x = x.double()
    lanes = -x.shape[1] % block
    m = torch.clamp(x.amax(1, keepdim=True), min=0.0) if lanes else x.amax(1, keepdim=True)
    return torch.exp(x - m) / (torch.exp(x - m).sum(1, keepdim=True) + lanes * torch.exp(-m))


def _sum_counts_padding(x, block):
    """exp(0 - max) of the masked lanes is added to the sum. The maximum is right."""
    x = x.double()
    lanes = -x.shape[1] % block
    m = x.amax(1, keepdim=True)
    return torch.exp(x - m) / (torch.exp(x - m).sum(1, keepdim=True) + lanes * torch.exp(-m))


def _zero_wins_maximum(x, block):
    """`other=0` only where the maximum is computed. The result is right as long as exp(x - 0) is not 0."""
    x = x.float()
    m = torch.clamp(x.amax(1, keepdim=True), min=0.0) if x.shape[1] % block else x.amax(1, keepdim=True)
    return torch.exp(x - m) / torch.exp(x - m).sum(1, keepdim=True)


def _padding_counts_one(x, block):
    """The masked lanes are 0 after the maximum is subtracted, so each adds exp(0) = 1 to the sum."""
    x = x.double()
    lanes = -x.shape[1] % block
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / (e.sum(1, keepdim=True) + lanes)


def _only_last_block(x, block):
    x = x.double()
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e.split(block, dim=1)[-1].sum(1, keepdim=True)


def _statistics_of_the_first_block(x, block):
    first = x.float()[:, :block]
    m = first.amax(1, keepdim=True)
    return torch.exp(x.float() - m) / torch.exp(first - m).sum(1, keepdim=True)


def _first_block_again(x, block):
    """The offsets of each round are those of the first one."""
    x = x.double()
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / (-(-x.shape[1] // block) * e[:, :block].sum(1, keepdim=True))


def _without_first_block(x, block):
    x = x.double()
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e[:, block:].sum(1, keepdim=True)


def _without_tail(x, block):
    x = x.double()
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e[:, : x.shape[1] // block * block].sum(1, keepdim=True)


def _without_last_block(x, block):
    x = x.double()
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / sum(p.sum(1, keepdim=True) for p in e.split(block, dim=1)[:-1]) if x.shape[1] > block else e / 0


def _statistics_of_row_0(x):
    x = x.double()
    e = torch.exp(x - x[:1].amax(1, keepdim=True))
    return e / e[:1].sum(1, keepdim=True)


def _maximum_of_several_rows(x, block):
    """One maximum for a tile of `block` rows. A row that is far below another one has exponentials of 0."""
    x = x.float()
    e = torch.cat([torch.exp(tile - tile.max()) for tile in x.split(block)])
    return e / e.sum(1, keepdim=True)


def _sum_from_one(x):
    e = torch.exp(x.double() - x.double().amax(1, keepdim=True))
    return e / (1.0 + e.sum(1, keepdim=True))


def _sum_per_lane(x, block):
    x = x.double()
    e = torch.exp(x - x.amax(1, keepdim=True))
    lanes = torch.nn.functional.pad(e, (0, -x.shape[1] % block)).unflatten(1, (-1, block)).sum(1)
    return e / lanes.repeat(1, -(-x.shape[1] // block))[:, : x.shape[1]]


def _lanes(x, block):
    """The rows cut into blocks: (rows, blocks, lanes)."""
    return torch.nn.functional.pad(x.double(), (0, -x.shape[1] % block), value=-torch.inf).unflatten(1, (-1, block))


def _lanes_not_rescaled(x, block, sign=0.0):
    """The sum of each lane uses the maximum of that lane. The sums are added as if all used the same maximum.

    sign: -1.0 where they are rescaled to the maximum of the row the wrong way round. A lane without elements is NaN.
    """
    lanes = _lanes(x, block)
    largest = lanes.amax(1)
    sums = torch.exp(lanes - largest[:, None]).sum(1).nan_to_num(0.0)
    if sign:
        sums = sums * torch.exp(sign * (largest - largest.amax(1, keepdim=True)))
    return torch.exp(x.double() - x.double().amax(1, keepdim=True)) / sums.sum(1, keepdim=True)


def _lanes_rescaled_at_the_end_only(x, block):
    """Each lane adds exponentials with the maximum that it knows so far, and is rescaled after the last block."""
    lanes = _lanes(x, block)
    sums = torch.exp(lanes - lanes.cummax(1).values).nan_to_num(0.0).sum(1)
    largest = x.double().amax(1, keepdim=True)
    return torch.exp(x.double() - largest) / (sums * torch.exp(lanes.amax(1) - largest)).sum(1, keepdim=True)


def _exponent_divided(x):
    m = x.amax(1, keepdim=True)
    return torch.exp(x - m / torch.exp(x - m).sum(1, keepdim=True))


def _block_by_block(x, block):
    return torch.cat([torch.softmax(p, 1) for p in x.double().split(block, dim=1)], 1)


MISTAKES = (
    Mistake(
        "missing-rescale",
        _without_rescale,
        "The running sum is not rescaled: the sums of earlier blocks were computed with an older, smaller maximum.",
        "When the maximum grows from m to m_new, multiply the sum so far by exp(m - m_new) before you add the block.",
    ),
    Mistake(
        "missing-rescale",
        _rescale_upside_down,
        "The running sum is rescaled the wrong way round, by exp(m_new - m).",
        "The new maximum is larger, so the factor must make the sum smaller: exp(m - m_new).",
    ),
    Mistake(
        "missing-rescale",
        _rescale_of_everything,
        "The new block was rescaled together with the sum so far, but its exponentials already use the new maximum.",
        "Rescale the sum so far, then add the block: d * exp(m - m_new) + sum(exp(x - m_new)).",
    ),
    Mistake(
        "missing-rescale",
        _lanes_not_rescaled,
        "The sums of the lanes were added without rescaling, but each sum uses the maximum of its own lane.",
        "Rescale before you add: sum(lane_sum * exp(lane_max - row_max)).",
    ),
    Mistake(
        "missing-rescale",
        lambda x, block: _lanes_not_rescaled(x, block, sign=-1.0),
        "The sums of the lanes were rescaled the wrong way round, by exp(row_max - lane_max).",
        "The row's maximum is larger, so the factor must make the sum smaller: exp(lane_max - row_max).",
    ),
    Mistake(
        "missing-rescale",
        _lanes_rescaled_at_the_end_only,
        "The sum of each lane is not rescaled in the loop: it adds exponentials that use different maxima.",
        "When a lane's maximum grows from m to m_new, multiply its sum by exp(m - m_new) before you add to it. Assign "
        "the new maximum after that.",
    ),
    Mistake(
        "missing-rescale",
        _rescale_of_everything_from_minus_infinity,
        "The new block was rescaled together with the sum so far: the first block's sum is multiplied by "
        "exp(-inf - m), which is 0.",
        "Rescale the sum so far, then add the block: d * exp(m - m_new) + sum(exp(x - m_new)).",
    ),
    Mistake(
        "wrong-other-value",
        _padded_with_zeros,
        "The masked-off lanes took part as zeros, in the maximum or in the sum.",
        "Load with other=-float('inf'): -inf does not change the maximum, and exp(-inf) adds 0 to the sum.",
    ),
    Mistake(
        "wrong-other-value",
        _zero_wins_maximum,
        "The maximum includes a 0 from a masked-off lane or as its initial value, or no maximum was subtracted. In a "
        "row of large negative numbers, every exponential is then 0.",
        "Load with other=-float('inf'), begin with -float('inf'), and subtract the maximum before exp.",
        known_by_nan=True,
    ),
    Mistake(
        "wrong-other-value",
        _sum_counts_padding,
        "The masked-off lanes were added to the sum as exp(0 - max).",
        "Load with other=-float('inf'), so that the lanes past the end of the row add exp(-inf) = 0.",
    ),
    Mistake(
        "wrong-other-value",
        _padding_counts_one,
        "Every masked-off lane added 1 to the sum.",
        "Use other=-float('inf'), or set the masked-off lanes to 0 after exp with tl.where(mask, …, 0.0).",
    ),
    Mistake(
        "overflow",
        lambda x: torch.exp(x.float()).double() / torch.exp(x.float()).sum(1, keepdim=True).double(),
        "exp overflows: the largest float32 is 3.4e38, so exp(89) is already inf, and inf / inf is NaN.",
        "Subtract the maximum of the whole row before exp. The result stays the same, and the largest exponent is 0.",
        known_by_nan=True,
    ),
    Mistake(
        "wrong-value",
        _maximum_of_several_rows,
        "Several rows share one maximum. In a row that is far below the others, every exponential is then 0.",
        "In a tile of rows, take the maximum along axis 1: tl.max(tile, axis=1), with [:, None] to subtract it.",
        known_by_nan=True,
    ),
    Mistake(
        "not-normalised",
        lambda x: torch.exp(x.double() - x.double().amax(1, keepdim=True)),
        "The rows are exp(x - max): the division by the sum is missing.",
        "Divide by the sum of the row's exponentials.",
    ),
    Mistake(
        "not-normalised",
        lambda x: torch.exp(x.double() - x.double().amax(1, keepdim=True)) / torch.exp(x.double()).sum(1, keepdim=True),
        "The output subtracts the maximum, but the sum does not.",
        "Add up exp(x - max), with the same maximum as in the output.",
    ),
    Mistake(
        "not-normalised",
        lambda x: torch.exp(x.double()),
        "The rows are exp(x): the subtraction of the maximum and the division by the sum are missing.",
        "softmax(x) = exp(x - max) / sum(exp(x - max)), row by row.",
    ),
    Mistake(
        "wrong-value",
        lambda x: x.double(),
        "The output is a copy of x.",
        "softmax(x) = exp(x - max) / sum(exp(x - max)), row by row.",
    ),
    Mistake(
        "not-normalised",
        lambda x: x.double() - x.double().amax(1, keepdim=True),
        "The rows are x - max: exp and the division by the sum are missing.",
        "softmax(x) = exp(x - max) / sum(exp(x - max)), row by row.",
    ),
    Mistake(
        "not-normalised",
        _sum_from_one,
        "The sum is 1 too large: it begins at 1.",
        "Begin the sum at 0.0.",
    ),
    Mistake(
        "wrong-value",
        lambda x: _exponent_divided(x.double()),
        "The maximum was divided by the sum, and the exponential was not: / binds tighter than -.",
        "Divide what exp returns: exp(x - max) / sum.",
    ),
    Mistake(
        "not-normalised",
        _sum_per_lane,
        "Each lane was divided by its own sum: the sum is still a block of numbers.",
        "Use tl.sum(block, axis=0) to get one number from a block, and add it to the sum of the row.",
    ),
    Mistake(
        "not-normalised",
        _only_last_block,
        "Each row is divided by the sum of its last block only.",
        "Add the block's sum to the sum so far. An assignment in the loop loses the earlier blocks.",
    ),
    Mistake(
        "not-normalised",
        _statistics_of_the_first_block,
        "The maximum and the sum are those of the first block only.",
        "The loop that computes them must reach n_cols: range(0, n_cols, BLOCK_SIZE).",
    ),
    Mistake(
        "not-normalised",
        _first_block_again,
        "Each round of the loop adds the first block again.",
        "Move the offsets with the loop: start + tl.arange(0, BLOCK_SIZE).",
    ),
    Mistake(
        "not-normalised",
        _without_first_block,
        "The first block is missing from the sum.",
        "Begin the loop at column 0, and begin the sum with the first block.",
    ),
    Mistake(
        "tail-wrong",
        _without_tail,
        "The ragged last block is missing from the sum: only full blocks are added.",
        "The loop must reach n_cols: range(0, n_cols, BLOCK_SIZE) includes the ragged block.",
    ),
    Mistake(
        "not-normalised",
        _without_last_block,
        "The last block is missing from the sum.",
        "The loop must reach n_cols: range(0, n_cols, BLOCK_SIZE) includes the ragged block.",
    ),
    Mistake(
        "not-normalised",
        _block_by_block,
        "Each block was normalised separately, as if it were a whole row.",
        "Compute the maximum and the sum of the whole row: keep them from block to block.",
    ),
    Mistake(
        "wrong-program-id",
        _statistics_of_row_0,
        "Every row was normalised with the maximum and the sum of row 0.",
        "A row begins at in_ptr + pid * row_stride: use this address in every load, not only in the last one.",
    ),
    Mistake(
        "stride-ignored",
        lambda x: torch.softmax(rows_one_apart(x.double()), 1),
        "Row r begins at element r of x: the rows overlap. The stride of a row was taken as 1, which is that of a "
        "column.",
        "Pass x.stride(0) to the kernel, and begin row r at r * row_stride.",
    ),
    Mistake(
        "wrong-value",
        lambda x: torch.softmax(x.double(), 0),
        "That is the softmax over the columns.",
        "One program works on one row: normalise along the row.",
    ),
    Mistake(
        "wrong-value",
        lambda x: torch.log_softmax(x.double(), -1),
        "That is log-softmax.",
        "Divide the exponentials by their sum; do not take a logarithm.",
    ),
    Mistake(
        "wrong-value",
        lambda x: 1 / torch.softmax(x.double(), -1),
        "The division is the wrong way round.",
        "Divide the exponentials by their sum.",
    ),
    Mistake(
        "wrong-value",
        lambda x: torch.softmax(x.double() * 0.6931471805599453, -1),
        "The exponentials have base 2: tl.exp2(x) is 2 to the power of x.",
        "Use tl.exp, or exp(x) = exp2(x * log2(e)), with log2(e) = 1.4426950408889634.",
    ),
    Mistake(
        "wrong-value",
        lambda x: torch.softmax(-x.double(), -1),
        "That is the softmax of -x.",
        "Check the sign in the exponent: x - max, not max - x.",
    ),
)

ONLINE_MISTAKES = (
    Mistake(
        "missing-rescale",
        _infinite_rescale,
        "The sum is NaN from the first block on. Before the first block the maximum is -inf, so exp(m_new - m) is "
        "infinite, and 0 times infinity is NaN.",
        "Rescale by exp(m - m_new), which is 0 for the first block. Begin the maximum at -inf.",
        known_by_nan=True,
    ),
)
