"""Rules about what the numbers look like."""

from __future__ import annotations

import torch

from ..exercises.spec import Mistake, Tag
from ..verdict import Finding
from .observation import Observation, place_in_words


def known_mistake(o: Observation) -> Finding | None:
    return as_mistake(o, o.mistakes[0]) if o.mistakes else None


def as_mistake(o: Observation, mistake: Mistake) -> Finding:
    advice = mistake.advice[0].lower() + mistake.advice[1:]
    return Finding(mistake.slug, o.worst_in_words, mistake.explanation, advice)


def unwritten(o: Observation) -> Finding | None:
    c = o.comparison
    if c is None or c.right or not bool((c.bad & c.unwritten).any()):
        return None
    count = f"{int(c.unwritten.sum())} of {c.bad.numel()} elements were never written ({o.case.name})."
    if c.unwritten.all():
        return Finding(
            "unwritten-output",
            count,
            "The store is missing, goes elsewhere, or its mask is true for too few lanes.",
            "store the result at output_ptr + offsets, with the mask of the loads.",
        )
    if block := c.only_tail(o.blocks):
        return Finding(
            "tail-wrong",
            f"{count} All of them lie in the last, ragged block (block size {block}).",
            "The grid or the loop ends before the remainder.",
            "round up: triton.cdiv(n, BLOCK_SIZE) programs, or range(0, n, BLOCK_SIZE).",
            second="unwritten-output",
        )
    return Finding(
        "unwritten-output",
        f"{count} One wrong element: {place_in_words(c)}.",
        "No program reached them: the grid is too small, a loop ends early, or the store's mask is too narrow.",
        "count: programs × elements per program must cover the output.",
    )


def not_finite(o: Observation) -> Finding | None:
    c = o.comparison
    if c is None or c.right or not c.made_not_finite.any():
        return None
    where = f"{o.worst_in_words} {int(c.made_not_finite.sum())} elements are NaN or infinite."
    if Tag.HALF in o.case.about and bool(torch.isinf(c.value).any()):
        return Finding(
            "low-precision", where, "float16 ends at 65504: a sum or an exponential kept in it overflows.",
            "convert to float32 right after the load: x.to(tl.float32).", second="overflow",
        )  # fmt: skip
    return Finding(
        "nan",
        where,
        "NaN comes from inf - inf, 0 * inf, 0 / 0 or inf / inf, or from a lane that was never loaded."
        if c.value.isnan().any()
        else "Infinity is a division by 0, such as a sum that is still empty, or exp(x - m) where m is still -inf.",
        "look at what masked-off lanes hold, and at the first value of every running maximum and sum.",
    )


def tail(o: Observation) -> Finding | None:
    c = o.comparison
    if c is None or c.right or not c.bad.any() or Tag.MASKED in o.case.about:
        return None
    block = c.only_tail(o.blocks)
    if block is None:
        return None
    return Finding(
        "tail-wrong",
        f"{o.worst_in_words} All wrong elements lie in the last, ragged block (block size {block}).",
        "The last block is shorter than the others, and its mask or its offsets do not say so.",
        "compare the offsets with the length: mask = offsets < n.",
    )


def low_precision(o: Observation) -> Finding | None:
    c = o.comparison
    if c is None or c.right or c.relative_error > 0.06:
        return None
    if c.ratio is not None and abs(c.ratio - 1) > (1e-2 if Tag.HALF in o.case.about else 2e-3):
        return None
    if Tag.HALF not in o.case.about and c.relative_error > 0.012:
        return None
    if c.bound.row_sum:
        off, what = f"row sums are off by {c.row_sum_error:.1e}", "a sum or an exponential"
    else:
        off, what = f"errors reach {c.relative_error:.1e}", "a number on the way"
    return Finding(
        "low-precision",
        f"The result is close, but {off} ({o.case.name}).",
        f"Most often, {what} was kept in half precision: 8 or 11 bits hold about three digits.",
        "convert to float32 right after the load, x.to(tl.float32), and accumulate in float32; the store converts "
        "back.",
    )


def constant_factor(o: Observation) -> Finding | None:
    c = o.comparison
    if c is None or c.right or c.ratio is None or abs(c.ratio - 1) < 1e-6 or not c.varies:
        return None
    return Finding(
        "constant-factor",
        f"Every element is {c.ratio:.6g} times the right one ({o.case.name}).",
        "The kernel is right up to one factor.",
        "look for a factor that should not be there, or a division that is missing.",
    )


def wrong_value(o: Observation) -> Finding | None:
    c = o.comparison
    if c is None or c.right:
        return None
    rows = c.bad_rows
    pattern = f"{int(c.bad.sum())} of {c.bad.numel()} elements are wrong"
    if len(rows) > 1 and not bool(rows[0]) and int(rows.sum()) == len(rows) - 1:
        pattern += ": all rows but the first"
    elif len(rows) > 1 and not rows.all():
        pattern += f", in {int(rows.sum())} of {len(rows)} rows"
    return Finding(
        "wrong-value",
        f"{o.worst_in_words} {pattern}.",
        "Every element is 0: zeros were stored, or something was divided by infinity." if not c.value.any() else "",
        advice="work one program out by hand: its offsets, its mask, what it loads, what it stores.",
    )
