"""Rules about patterns in the numbers."""

from __future__ import annotations

import torch

from ..exercises.spec import Mistake, Tag
from ..text import many
from ..verdict import Finding
from .comparison import close
from .observation import Observation, place_in_words


def known_mistake(o: Observation) -> Finding | None:
    return as_mistake(o, o.mistakes[0]) if o.mistakes else None


def as_mistake(o: Observation, mistake: Mistake) -> Finding:
    advice = mistake.advice[0].lower() + mistake.advice[1:]
    return Finding(mistake.slug, o.worst_in_words, mistake.explanation, advice)


def unwritten(o: Observation) -> Finding | None:
    c = o.wrong
    if c is None or not bool((c.bad & c.unwritten).any()):
        return None
    unwritten = int(c.unwritten.sum())
    was = "was" if unwritten == 1 else "were"
    count = f"{unwritten} of {c.bad.numel()} elements {was} never written ({o.case.name})."
    if c.unwritten.all():
        return Finding(
            "unwritten-output",
            count,
            "The store is missing, or it writes to another place, or its mask is true for too few lanes.",
            "store the result at output_ptr + offsets, with the same mask as the loads.",
        )
    if block := c.only_tail(o.constants if o.block else o.blocks):
        return Finding(
            "tail-wrong",
            f"{count} All of them are in the last, ragged block (block size {block}).",
            "The grid or the loop ends before the last block, which is not full.",
            "round up: triton.cdiv(n, BLOCK_SIZE) programs, or range(0, n, BLOCK_SIZE).",
            second="unwritten-output",
        )
    return Finding(
        "unwritten-output",
        f"{count} One of them: {place_in_words(c)}." if c.unwritten[c.worst] else count,
        "No program wrote them: the grid is too small, a loop ends too early, the store stands outside of its loop, or "
        "its mask is too narrow.",
        "count the elements: programs × elements per program must cover the output.",
    )


def not_finite(o: Observation) -> Finding | None:
    c = o.wrong
    if c is None or not c.made_not_finite.any():
        return None
    where = f"{o.worst_in_words} {many(int(c.made_not_finite.sum()), 'element is', 'elements are')} NaN or infinite."
    told = torch.isfinite(c.value) & (c.value != 0)  # a number that was divided by infinity is 0
    near = close(c.value, c.expected, 0.06, c.bound.absolute)
    if Tag.HALF in o.case.about and bool(torch.isinf(c.value).any()) and bool(near[told].all()):
        return Finding(
            "low-precision", where, "The largest float16 is 65504: a larger sum or exponential overflows.",
            "convert to float32 right after the load: x.to(tl.float32).", second="overflow",
        )  # fmt: skip
    return Finding(
        "nan",
        where,
        "NaN comes from inf - inf, 0 * inf, 0 / 0 or inf / inf, or from a lane that was not loaded."
        if c.value.isnan().any()
        else "Infinity comes from a division by 0, such as a sum that is still 0, or from exp(x - m) while m is still "
        "-inf.",
        "check what masked-off lanes hold, the initial value of every running maximum and sum, and that the loop gives "
        "each of them its new value.",
    )


def tail(o: Observation) -> Finding | None:
    c = o.wrong
    if c is None or not c.bad.any() or Tag.MASKED in o.case.about:
        return None
    block = c.only_tail(o.blocks)
    if block is None:
        return None
    return Finding(
        "tail-wrong",
        f"{o.worst_in_words} All wrong elements are in the last, ragged block (block size {block}).",
        "The last block is shorter than the others, but its mask or its offsets do not allow for that.",
        "compare the offsets with the length: mask = offsets < n.",
    )


def low_precision(o: Observation) -> Finding | None:
    c = o.wrong
    if c is None or c.relative_error > 0.06:
        return None
    if c.ratio is not None and abs(c.ratio - 1) > (1e-2 if Tag.HALF in o.case.about else 2e-3):
        return None
    if Tag.HALF not in o.case.about and c.relative_error > 0.012:
        return None
    if c.ratio is not None and c.varies and not c.bound.row_sum:  # rounded elements have no common factor
        return None
    if c.bound.row_sum:
        off, what = f"row sums are off by {c.row_sum_error:.1e}", "a sum or an exponential"
    else:
        off, what = f"errors reach {c.relative_error:.1e}", "an intermediate value"
    return Finding(
        "low-precision",
        f"The result is close, but {off} ({o.case.name}).",
        f"Most often, {what} was kept in half precision, which has 8 or 11 bits: about three digits.",
        "convert to float32 right after the load, x.to(tl.float32), and accumulate in float32. The store converts "
        "back.",
    )


def constant_factor(o: Observation) -> Finding | None:
    c = o.wrong
    if c is None or c.ratio is None or abs(c.ratio - 1) < 1e-6 or not c.varies:
        return None
    return Finding(
        "constant-factor",
        f"Every element is {c.ratio:.6g} times the right one ({o.case.name}).",
        "The kernel is right except for one constant factor.",
        "look for a factor that should not be there, or for a missing division.",
    )


def wrong_value(o: Observation) -> Finding | None:
    c = o.wrong
    if c is None:
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
        "Every element is 0: the kernel stored zeros, or it divided by infinity." if not c.value.any() else "",
        advice="follow one program by hand: its offsets, its mask, what it loads, what it stores.",
    )
