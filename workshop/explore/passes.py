"""Three passes, two and one: the same row, walked over by three kernels, with the bytes that each has moved."""

from __future__ import annotations

from dataclasses import dataclass

from workshop.explore.controls import Explorer, choice, slider
from workshop.picture import READ, WIDTH, WRITE, Drawing, Picture, code, paragraph

ROW, BLOCK, BYTES = 12, 4, 4  # elements of the row and of a block; bytes of a float32


@dataclass(frozen=True)
class Walk:
    """One kernel: its passes over the row, (what it is for, whether it writes), its code, and the blocks of a row.

    With more than one block, each pass is one line of the code.
    """

    passes: tuple[tuple[str, bool], ...]
    lines: tuple[str, ...]
    blocks: int = ROW // BLOCK

    @property
    def steps(self) -> int:
        return len(self.passes) * self.blocks

    def touched(self, step: int) -> range:
        """The elements of a step; the first one is 1."""
        width = ROW // self.blocks
        first = (step - 1) % self.blocks * width
        return range(first, first + width) if step else range(0)


WALKS = {
    "three passes": Walk(
        (("the maximum", False), ("the sum", False), ("the result", True)),
        (
            "for each block:  row_max = tl.maximum(row_max, tl.max(block))",
            "for each block:  row_sum += tl.sum(tl.exp(block - row_max))",
            "for each block:  tl.store(…, tl.exp(block - row_max) / row_sum)",
        ),
    ),
    "two passes": Walk(
        (("maximum and sum together", False), ("the result", True)),
        (
            "for each block:  rescale row_sum to the new row_max, add the block",
            "for each block:  tl.store(…, tl.exp(block - row_max) / row_sum)",
        ),
    ),
    "one pass": Walk(
        (("everything", True),),
        ("row = tl.load(…)  # all of it", "tl.store(…, tl.exp(row - tl.max(row)) / …)"),
        blocks=1,
    ),
}


def passes(kernel: str = "three passes") -> Explorer:
    """Walks a row of 12 numbers as a softmax kernel of three passes, two or one does, and counts the bytes."""
    return Explorer(
        _draw,
        kernel=choice("kernel", kernel, WALKS),
        step=slider("step", 0, range(max(walk.steps for walk in WALKS.values()) + 1), steps=True),
    )


def traffic(kernel: str, step: int) -> tuple[list[int], list[int]]:
    """How often each element has been read and written after `step` steps."""
    walk = WALKS[kernel]
    reads, writes = [0] * ROW, [0] * ROW
    for number in range(step):
        _, writing = walk.passes[number // walk.blocks]
        for element in walk.touched(number + 1):
            reads[element] += 1
            writes[element] += writing
    return reads, writes


def _draw(kernel: str, step: int) -> Picture | None:
    walk = WALKS[kernel]
    if step > walk.steps:
        return None
    reads, writes = traffic(kernel, step)
    moved = BYTES * (sum(reads) + sum(writes))
    current = min(max(step - 1, 0) // walk.blocks, len(walk.passes) - 1)
    purpose = walk.passes[current][0]
    now = f"Pass {current + 1} of {len(walk.passes)}: {purpose}." if step else "Before the first block."
    summary = f"{kernel.capitalize()}: {moved} bytes moved so far; a copy of this row moves {2 * ROW * BYTES}."
    if step == walk.steps:
        share = 2 * ROW * BYTES / moved
        summary += f" Done: {moved // ROW} bytes for each element, at most {share:.0%} of a copy's speed."
    drawing = Drawing(WIDTH, 118, f"{now} {summary}")
    left, side = 76, 48
    touched = walk.touched(step)
    for y, name, counts, color in ((8, "read", reads, READ), (60, "written", writes, WRITE)):
        drawing.text(0, y + 27, name, weight=600)
        for element, times in enumerate(counts):
            strong = element in touched and (name == "read" or walk.passes[current][1])
            drawing.cell(
                left + element * side, y, side, 42, str(times), color if times else None, strong=strong,
                opacity=0.15 + 0.2 * times, note=f"element {element}: {name} {times} times",
            )  # fmt: skip
    lit = {current} if walk.blocks > 1 else set(range(len(walk.lines)))
    html = drawing.html() + paragraph(f"{now} {summary}") + code(list(walk.lines), lit if step else set())
    return Picture(html, f"{now}\n{summary}")
