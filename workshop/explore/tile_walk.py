"""The walk of one tile along k: which parts of a and b are multiplied in each step, and where the mask is False."""

from __future__ import annotations

from workshop.explore.controls import Explorer, slider
from workshop.picture import CYCLE, READ, WIDTH, Drawing, Picture, code, paragraph
from workshop.words import count

M, N, K, BLOCK = 4, 6, 11, 4  # rows of a, columns of b, the side that they share, and the part of a step
LINES = (
    "point at the first K columns of a, and at the first K rows of b",
    "mask what is behind the end of k",
    "multiply the two tiles, and add the product to acc",
    "move K columns to the right in a, and K rows down in b",
)


def tile_walk(block: int = BLOCK) -> Explorer:
    """A tile of 4 × 6 sums over k = 11, in steps of `block`."""
    return Explorer(
        _draw,
        block=slider("K, numbers in a step", block, (2, 4, 8)),
        step=slider("step", 0, range(-(-K // 2) + 1), steps=True),
    )


def _draw(block: int, step: int) -> Picture | None:
    steps = -(-K // block)
    if step > steps:
        return None
    start = (step - 1) * block
    now = range(start, start + block) if step else range(0)
    beyond = max(0, start + block - K) if step else 0
    done = min(step * block, K)
    said = "Before the first step: acc is 0."
    if step:
        said = f"Step {step} of {steps}: columns {start} to {start + block - 1} of a meet the same rows of b."
    if beyond:
        said += f" {count(beyond, 'lane')} along k {'is' if beyond == 1 else 'are'} behind the end: masked, and 0."
    said += f" Each element of acc has {done} of {K} products."
    side = 22
    width = 12 * side  # of a, with lanes behind its end
    left, right, top = 30, 30 + width + 70, 30
    middle = top + 12 * side + 16
    drawing = Drawing(WIDTH, middle + M * side + 12, said)
    drawing.text(0, middle + 15, "a", weight=600)
    drawing.text(right, top - 10, "b", weight=600)
    drawing.text(right + N * side + 12, middle + 15, "acc", weight=600)
    for p in range(12):
        behind = p >= K
        if behind and p not in now:
            continue
        color = READ if p in now else CYCLE[0] if p < done else None
        look = {"color": color, "crossed": behind, "opacity": 0.55 if p in now else 0.12}
        for i in range(M):
            drawing.cell(left + p * side, middle + i * side, side, side, **look)
        for j in range(N):
            drawing.cell(right + j * side, top + p * side, side, side, **look)
    for i in range(M):
        for j in range(N):
            drawing.cell(
                right + j * side, middle + i * side, side, side, str(done), CYCLE[0], opacity=0.1 + 0.5 * done / K
            )
    lit = {1, 2, 3} if step else {0}
    return Picture(drawing.html() + paragraph(said) + code(list(LINES), lit), said)
