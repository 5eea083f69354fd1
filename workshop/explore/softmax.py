"""Softmax: a row walked over in three passes, two or one, and the running maximum and sum of online softmax."""

import math
from collections import namedtuple
from collections.abc import Sequence

import numpy as np

from workshop.explore.controls import WALKS, Control, Explorer, choice, slider
from workshop.notebook import page
from workshop.picture import CYCLE, READ, WIDTH, WRITE, Drawing, Picture, paragraph, plain_table, short

# -- three passes, two and one -----------------------------------------------------------------------------

ROW, BLOCK, BYTES = 12, 4, 4  # elements of the row and of a block; bytes of a float32

KERNELS = WALKS["softmax"]


def passes(kernel: str = "three passes") -> Explorer:
    """Walks a row of 12 numbers as a softmax kernel of three passes, two or one does, and counts the bytes."""
    return Explorer(
        _draw_passes,
        kernel=choice("kernel", kernel, KERNELS),
        step=slider("step", 0, range(1 + max(len(_steps(each)) for each in KERNELS)), steps=True),
    )


def _steps(kernel: str) -> list[tuple[int, range]]:
    """The pass and the elements of each step."""
    passes = len(KERNELS[kernel]["passes"])
    width = BLOCK if passes > 1 else ROW
    return [(number, range(first, first + width)) for number in range(passes) for first in range(0, ROW, width)]


def traffic(kernel: str, step: int) -> tuple[list[int], list[int]]:
    """How often each element has been read and written after `step` steps."""
    last, done = len(KERNELS[kernel]["passes"]) - 1, _steps(kernel)[:step]
    reads = [sum(element in elements for _, elements in done) for element in range(ROW)]
    writes = [sum(element in elements for number, elements in done if number == last) for element in range(ROW)]
    return reads, writes


def _draw_passes(kernel: str, step: int) -> Picture | None:
    names, steps = KERNELS[kernel]["passes"], _steps(kernel)
    if step > len(steps):
        return None
    reads, writes = traffic(kernel, step)
    moved = BYTES * (sum(reads) + sum(writes))
    current, touched = steps[step - 1] if step else (0, ())
    now = f"Pass {current + 1} of {len(names)}: {names[current]}." if step else "Before the first block."
    summary = f"{kernel.capitalize()}: {moved} bytes moved so far; a copy of this row moves {2 * ROW * BYTES}."
    if step == len(steps):
        share = 2 * ROW * BYTES / moved
        summary += f" Done: {moved // ROW} bytes for each element, at most {share:.0%} of a copy's speed."
    drawing = Drawing(WIDTH, 118, f"{now} {summary}")
    for y, name, counts, color in ((8, "read", reads, READ), (60, "written", writes, WRITE)):
        drawing.text(0, y + 27, name, weight=600)
        strong = touched if name == "read" or current == len(names) - 1 else ()
        looks = [
            {"words": str(times), "color": color if times else None, "strong": element in strong,
             "opacity": 0.15 + 0.2 * times, "note": f"element {element}: {name} {times} times"}
            for element, times in enumerate(counts)
        ]  # fmt: skip
        drawing.cells(76, y, 48, 42, looks)
    lit = set() if not step else {current} if len(names) > 1 else {0, 1}
    html = drawing.html() + paragraph(f"{now} {summary}") + page("walk.html", lines=KERNELS[kernel]["lines"], lit=lit)
    return Picture(html, f"{now}\n{summary}")


# -- the running maximum and the running sum ---------------------------------------------------------------

LONGEST_ROW = 16
CODE = WALKS["online"]["lines"]
RESCALE = 3  # its line


def online_softmax(row: Sequence[float] | None = None, block: int = 4) -> Explorer:
    """Walks one row of at most 16 numbers block by block, with the running maximum m and the running sum d.

    The switch leaves the rescale out, so that its effect on the result can be seen.
    """
    values = np.asarray([1, 2, 0, 3, 4, 1, 6, 2, 5, 0, 7] if row is None else row, dtype=np.float64)
    if values.ndim != 1 or not 1 <= values.size <= LONGEST_ROW:
        raise ValueError(f"row has shape {list(values.shape)}, but must be one row of 1 to {LONGEST_ROW} numbers")
    if block < 1:
        raise ValueError(f"block is {block}, but a block has at least one number")
    blocks = math.ceil(values.size / block)
    return Explorer(
        lambda without_rescale, step: _draw_online_softmax(values, block, step, not without_rescale),
        without_rescale=Control("without rescale", False, (False, True)),
        step=slider("step", 0, range(blocks + 2), steps=True),
    )


# The state after one block. parts: the terms of `d` so far, in the unit each was added in.
SoftmaxStep = namedtuple("SoftmaxStep", "m_old m rescale block_sum d parts")


def online_softmax_steps(row: np.ndarray, block: int, rescaling: bool = True) -> list[SoftmaxStep]:
    """Online softmax over `row`, one step per block; without `rescaling` the old sum keeps its old unit."""
    m, d, parts = -np.inf, np.float64(0.0), np.zeros(0)
    steps = []
    with np.errstate(invalid="ignore"):  # -inf - -inf is NaN here, as it is in a kernel
        for start in range(0, row.size, block):
            values = row[start : start + block]
            m_new = max(m, values.max())
            rescale = np.exp(np.float64(m) - m_new) if rescaling else np.float64(1.0)
            terms = np.exp(values - m_new)
            d = d * rescale + terms.sum()
            parts = np.concatenate([parts * rescale, terms])
            steps.append(SoftmaxStep(m, m_new, rescale, terms.sum(), d, parts))
            m = m_new
    return steps


def _draw_online_softmax(row: np.ndarray, block: int, step: int, rescaling: bool) -> Picture:
    steps = online_softmax_steps(row, block, rescaling)
    dividing = step > len(steps)
    done = steps[:step]
    heights, verdict = done[-1].parts if done else np.zeros(0), ""
    if dividing:
        with np.errstate(invalid="ignore"):
            heights = np.exp(row - done[-1].m) / done[-1].d
        total = heights.sum()
        wrong, verdict = not np.isclose(total, 1.0), "The result adds up to 1, as it must."
        if np.isnan(total):
            verdict = "The row is NaN: −∞ − (−∞) has no value."
        elif wrong:
            verdict = f"The result adds up to {short(total)}, not 1: terms in different units were added."
    header = ["block", "m before", "m", "rescale exp(m before − m)", "sum of exp(x − m)", "d"]
    factor = (lambda s: short(s.rescale)) if rescaling else (lambda s: "left out")
    rows = [[str(k), short(s.m_old), short(s.m), factor(s), short(s.block_sum), short(s.d)] for k, s in enumerate(done)]
    what = _step_in_words(step, steps, rescaling)
    drawing = _softmax_bars(row, block, step, heights, f"{what} {verdict}".strip())
    legend = "A bar is one element of the result." if dividing else "A bar is one term of the sum d."
    lit = {0} if step == 0 else {7} if dividing else {2, 3, 4, 5}
    listing = [*CODE]
    if not rescaling:
        listing[RESCALE] = "    (d is not rescaled)"
    html = drawing.html() + paragraph(f"{what} {legend}") + page("walk.html", lines=listing, lit=lit)
    html += page("table.html", header=header, rows=rows) if rows else ""
    html += paragraph(verdict, "wrong" if wrong else "") if verdict else ""
    text = [f"row {', '.join(map(short, row))} in blocks of {block}", what, plain_table(header, rows), verdict]
    return Picture(html, "\n".join(filter(None, text)))


def _step_in_words(step: int, steps: list[SoftmaxStep], rescaling: bool) -> str:
    if step == 0:
        return "Before the first block: m = −∞, d = 0."
    now = steps[min(step, len(steps)) - 1]
    if step > len(steps):
        return f"Second pass: each element is exp(x − m) / d, with m = {short(now.m)}, d = {short(now.d)}."
    if now.m == now.m_old:
        return f"Block {step - 1}: the maximum stays {short(now.m)}, so the old sum does not change."
    if step == 1:
        return f"Block 0: the first maximum is {short(now.m)}."
    old, new = short(now.m_old), short(now.m)
    then = f"so the old sum is multiplied by exp({old} − {new}) = {short(now.rescale)}."
    if not rescaling:
        then = f"but the old sum still counts in units of exp({old})."
    return f"Block {step - 1}: the maximum grows from {old} to {new}, {then}"


def _softmax_bars(row, block, step, heights, label: str) -> Drawing:
    """Bars over the row's numbers: the terms of the sum so far, or the result in the last step."""
    left, side, base, full = 12, 656 / max(row.size, 8), 116, 88
    drawing = Drawing(WIDTH, 196, label)
    top = max(1.0, np.nanmax(heights, initial=0.0))
    for index, value in enumerate(row):
        x, number = left + index * side, index // block
        color = CYCLE[number % len(CYCLE)]
        if index < heights.size and np.isfinite(heights[index]):
            height = full * heights[index] / top
            drawing.box(x + 5, base - height, side - 10, height, color, 0.6, note=short(heights[index]))
            label = f"{heights[index]:.2f}" if heights[index] >= 0.005 else "≈0"
            drawing.text(x + side / 2, base - height - 6, label, "middle")
        drawing.cell(x, base + 8, side, 32, short(value), color, strong=number == step - 1, opacity=0.35)
    if not heights.size:
        drawing.text(left, base - 12, "No term yet: press ▶ or next.")
    drawing.line(left, base, left + row.size * side, base)
    for number, first in enumerate(range(0, row.size, block)):
        middle = left + (first + min(first + block, row.size)) / 2 * side
        drawing.text(middle, base + 60, f"block {number}", "middle", 600 if number == step - 1 else 400)
    return drawing
