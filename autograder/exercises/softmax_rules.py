"""The rules that only a softmax needs: what its errors mean, case by case and for the whole answer."""

from __future__ import annotations

from itertools import combinations, pairwise

import torch

from ..text import many
from ..verdict import Finding
from .spec import Tag

MOST_BLOCKS = 64  # of a row that may be left out; other constants are small, such as a number of stages


def overflowed(o) -> Finding | None:
    """NaN because exp overflows, or because a whole block is -inf."""
    c = o.wrong
    if c is None or not c.made_not_finite.any():
        return None
    where = f"{o.worst_in_words} {many(int(c.made_not_finite.sum()), 'element is', 'elements are')} NaN or infinite."
    if o.case.about & {Tag.HUGE, Tag.ASCENDING, Tag.DESCENDING}:
        return Finding(
            "overflow",
            where,
            "exp overflows (exp(89) is inf in float32), or a row is divided by a sum that lacks its largest term.",
            "subtract the maximum of the whole row before exp, and add every block to the sum: tl.sum, and +=.",
        )
    if Tag.MASKED in o.case.about:
        if _only_low_rows(o, c):
            return Finding(
                "nan",
                where,
                "These rows begin with -inf, and their numbers are low. If 0 takes the place of -inf as the maximum, "
                "all exponentials are 0, and 0 / 0 is NaN. If -inf stays and is subtracted, -inf - (-inf) is NaN.",
                "subtract tl.where(maximum == -float('inf'), 0.0, maximum), but keep the maximum itself for the next "
                "block.",
            )
        return Finding(
            "nan",
            where,
            "If all elements of a block are -inf, the running maximum stays -inf. Then -inf - (-inf) is NaN, in the "
            "rescale factor and in the exponentials of the block.",
            "subtract tl.where(maximum == -float('inf'), 0.0, maximum) in both places.",
        )
    return None


def lost_low_rows(o) -> Finding | None:
    """Only rows of low numbers are wrong, and what is wrong there is NaN or 0."""
    c = o.wrong
    if c is None or not o.case.about & {Tag.FAR, Tag.NEGATIVE} or c.unwritten.any():
        return None
    if not _only_low_rows(o, c):
        return None
    wrong = c.value[c.bad]
    if not bool((wrong.isnan() | (wrong == 0)).all()):
        return None
    nan = c.value[c.bad_rows].isnan()
    if bool((nan.any(1) & ~nan.all(1)).any()):  # 0 / 0 makes a whole row NaN; here single exponentials overflowed
        return None
    return Finding(
        "wrong-other-value",
        f"{o.worst_in_words} Only rows of low numbers are wrong; the largest number of such a row is "
        f"{float(_highest(o)[c.bad_rows].max()):.4g}.",
        "The maximum of a row came out larger than every number in it, so all exponentials are 0: it begins at too "
        "large a number, or masked-off lanes hold one.",
        "begin with -float('inf') or the lowest float32, about -3.4e38, and load with other=-float('inf'), also where "
        "partial results are merged.",
    )


def _highest(o) -> torch.Tensor:
    return o.arguments[0].values.double().amax(1)


def _only_low_rows(o, c) -> bool:
    return bool(c.bad_rows.any()) and bool((_highest(o)[c.bad_rows] < -150.0).all())


def not_nan(o) -> Finding | None:
    """A row of nothing but -inf has no softmax, and the answer gives numbers for it."""
    c = o.wrong
    if c is None or Tag.ALL_MASKED not in o.case.about or not bool(c.expected[c.bad].isnan().all()):
        return None
    return Finding(
        "wrong-value",
        o.worst_in_words,
        "This row is nothing but -inf. Every term of its sum is 0, and 0 / 0 is NaN: torch.softmax returns NaN, too.",
        "leave this NaN as it is: nothing has to replace it.",
    )


def misses_columns(o) -> Finding | None:
    """The sum of every row lacks the exponentials of one column, or of whole blocks: rounding would not know which."""
    c = o.wrong
    if c is None or c.row_ratios is None or len(c.row_ratios) < 3 or Tag.HALF in o.case.about:  # two fit by chance
        return None
    missing = 1 - 1 / c.row_ratios.double()
    columns = c.expected.shape[1]
    blocks = (size for size in o.constants if columns <= MOST_BLOCKS * size)
    # not the first block: a wrong rescale loses it, too
    borders = sorted({columns}.union(*(range(size, columns, size) for size in blocks)))
    spans = torch.tensor([*pairwise(range(columns + 1)), *combinations(borders, 2)])
    sums = torch.nn.functional.pad(c.expected.double().cumsum(1), (1, 0))
    off = (sums[:, spans[:, 1]] - sums[:, spans[:, 0]] - missing[:, None]).abs()
    exactly = spans[(off <= 1e-5 + 1e-3 * missing[:, None]).all(0)].unique(dim=0)
    if len(exactly) != 1 or bool((missing < 1e-4).any()):
        return None
    first, last = int(exactly[0, 0]), int(exactly[0, 1]) - 1
    lacks = f"column {first}" if first == last else f"columns {first} to {last}"
    return Finding(
        "not-normalised",
        f"The rows do not sum to 1: the sum of every row lacks {lacks} ({o.case.name}).",
        "The exponentials are right. A lane is masked off that should not be, or the blocks have a gap between them.",
        "check where each block begins, that the loop's step is the size of a block, and that a lane is masked off "
        "only if its column is not below n_cols.",
    )


def not_normalised(o) -> Finding | None:
    """Each row is a multiple of the right row."""
    c = o.wrong
    if c is None or c.row_ratios is None or Tag.FAR in o.case.about:  # there a row has one element
        return None
    factors = c.row_ratios
    happened = (
        f"Each row is a multiple of the right row, with factors from {float(factors.min()):.4g} to "
        f"{float(factors.max()):.4g}: the rows do not sum to 1 ({o.case.name})."
    )
    x = o.arguments[0].values.double()
    low = x - x.amax(1, keepdim=True)
    for what, added in (("x - max", low), ("x", x)):
        if torch.allclose(factors.double(), torch.exp(low).sum(1) / added.sum(1), rtol=1e-3, atol=0.0):
            return Finding(
                "not-normalised",
                happened,
                f"The sum adds {what}, and not the exponentials.",
                "add up exp(x - max): the sum has the same exponentials as the output.",
            )
    return Finding(
        "not-normalised",
        happened,
        "The exponentials are right, but the sum is wrong: it misses elements, or counts lanes that hold no element.",
        "check the initial value of the sum, what each block adds, and what masked-off lanes add.",
    )


def more_in_the_sum(cases, o, finding: Finding) -> Finding | None:
    """The same number was added to the sum of every row: rounding would differ from row to row."""
    if finding.slug not in ("low-precision", "not-normalised", "constant-factor"):
        return None
    wrong = [o.wrong for o, _ in cases if o.wrong and not o.case.about & {Tag.HALF, Tag.FAR}]
    wrong = [c for c in wrong if c.row_ratios is not None]
    if not wrong:
        return None
    sums = torch.cat([1 / c.expected.amax(1) for c in wrong])  # of exp(x - maximum)
    ratios = torch.cat([c.row_ratios for c in wrong]).double()
    telling = (1 - ratios).abs() > 5e-6  # beyond what rounding does
    added, sums = (sums * (1 / ratios - 1))[telling], sums[telling]
    if len(sums) < 4 or sums.max() < 1.5 * sums.min() or not 0 < added.max() < 1.25 * added.min():
        return None
    return Finding(
        "not-normalised",
        f"The rows do not sum to 1: about {float(added.median()):.2g} was added to the sum of each ({o.case.name}).",
        "A softmax needs no such number: the largest term of each sum is exp(0) = 1, so no sum is 0.",
        "divide by the sum as it is. If you added nothing, look for what else enters each sum.",
    )


def only_ragged_rows(cases, o, finding: Finding) -> Finding | None:
    """Rows that fill their blocks are right, ragged rows are wrong, and no other rule explains it."""
    judged = [(o, f) for o, f in cases if o.comparison and o.constants]
    full = [(o, f) for o, f in judged if o.comparison.columns % max(o.constants) == 0]
    if not full or any(f for _, f in full):
        return None
    if all(Tag.SHORT in o.case.about for o, f in judged if f):  # only rows that are shorter than a block
        return None
    infinite = finding.slug == "wrong-value" and not bool(o.comparison.value.any())  # the sum is: all are 0
    if not infinite and finding.slug not in ("nan", "not-normalised", "constant-factor", "low-precision"):
        return None
    passed = sum(not f for _, f in judged)
    if finding.slug in ("nan", "low-precision") and passed > len(full):  # a ragged row is right
        return None  # a lane that makes one ragged row NaN, or changes its sum, does so in all of them
    if all(Tag.HALF in o.case.about for o, f in judged if f):  # the masked lanes are right in float32
        return None
    rounded = (o.comparison.row_sum_error > 0.1 * o.comparison.bound.row_sum for o, _ in full)
    if finding.slug == "low-precision" and any(rounded):
        return None  # full rows are rounded too, within the bound
    return Finding(
        "wrong-other-value",
        o.worst_in_words,
        "Rows that fill their blocks are right, but ragged rows are wrong: masked-off lanes take part in the maximum "
        "or in the sum.",
        "load with other=-float('inf'): -inf does not change the maximum, and exp(-inf) adds 0 to the sum.",
    )


def only_long_rows(cases, o, finding: Finding) -> Finding | None:
    """Rows of one block are right and longer rows are wrong, in a kernel that keeps a sum from block to block."""
    if finding.slug not in ("not-normalised", "constant-factor") or misses_columns(o):
        return None
    judged = [(o, f) for o, f in cases if o.comparison and o.constants]
    block = max(set.intersection(*(set(o.constants) for o, _ in judged)), default=0)
    short = [f for o, f in judged if o.comparison.columns <= block]
    if not short or any(short):
        return None
    return Finding(
        "missing-rescale",
        finding.happened,
        "Rows of one block are right, but longer rows are wrong: the sum is wrong from the second block on.",
        "when the maximum grows from m to m_new, multiply the sum so far by exp(m - m_new) before you add the block.",
        second="not-normalised",
    )


def lanes_without_elements(cases, o, finding: Finding) -> Finding | None:
    """NaN in ragged rows of a kernel whose lanes have maxima of their own."""
    judged = [(o, f) for o, f in cases if o.comparison and o.constants]
    full = [f for o, f in judged if o.comparison.columns % max(o.constants) == 0]
    if finding.slug != "nan" or not full or any(full):
        return None
    return Finding(
        "nan",
        finding.happened,
        "Rows that fill their blocks are right, and ragged rows are NaN. A lane that saw no element still has -inf as "
        "its maximum, and -inf - (-inf) is NaN: in the lane's rescale, or in the exponential of a masked-off lane.",
        "where a lane's maximum is -inf, subtract 0 instead: tl.where(maximum == -float('inf'), 0.0, maximum).",
        second="wrong-other-value",
    )
