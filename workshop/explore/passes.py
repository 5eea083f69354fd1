"""Three passes, two and one: the same row, walked over by three kernels, with the bytes that each has moved."""

from __future__ import annotations

from dataclasses import dataclass

from workshop.explore.controls import Choice, Explorer, Slider
from workshop.picture import READ, WIDTH, WRITE, Drawing, Picture, code, paragraph

ROW, BLOCK, BYTES = 12, 4, 4  # elements of the row and of a block; bytes of a float32


@dataclass(frozen=True)
class Walk:
    """One kernel: its passes over the row, (what it is for, whether it writes), and its code with the line of each."""

    passes: tuple[tuple[str, bool], ...]
    lines: tuple[str, ...]
    lit: tuple[int, ...]
    whole_row: bool = False


WALKS = {
    "three passes": Walk(
        (("the maximum", False), ("the sum", False), ("the result", True)),
        (
            "for each block:  row_max = tl.maximum(row_max, tl.max(block))",
            "for each block:  row_sum += tl.sum(tl.exp(block - row_max))",
            "for each block:  tl.store(…, tl.exp(block - row_max) / row_sum)",
        ),
        (0, 1, 2),
    ),
    "two passes": Walk(
        (("maximum and sum together", False), ("the result", True)),
        (
            "for each block:  rescale row_sum to the new row_max, add the block",
            "for each block:  tl.store(…, tl.exp(block - row_max) / row_sum)",
        ),
        (0, 1),
    ),
    "one pass": Walk(
        (("everything", True),),
        ("row = tl.load(…)  # all of it", "tl.store(…, tl.exp(row - tl.max(row)) / …)"),
        (0,),
        whole_row=True,
    ),
}


def passes(kernel: str = "three passes") -> Explorer:
    """Walks a row of 12 numbers as a softmax kernel of three passes, two or one does, and counts the bytes."""
    if kernel not in WALKS:
        raise ValueError(f"kernel is {kernel!r}, but this picture knows {', '.join(WALKS)}")
    return Explorer(
        _draw,
        {
            "kernel": Choice("kernel", kernel, tuple(WALKS)),
            "step": Slider("step", 0, 0, _steps(kernel), steps=True),
        },
        lambda kernel, step: {"step": _steps(kernel)},
    )


def _steps(kernel: str) -> int:
    walk = WALKS[kernel]
    return len(walk.passes) * (1 if walk.whole_row else ROW // BLOCK)


def traffic(kernel: str, step: int) -> tuple[list[int], list[int]]:
    """How often each element has been read and written after `step` steps."""
    walk = WALKS[kernel]
    blocks = 1 if walk.whole_row else ROW // BLOCK
    width = ROW // blocks
    reads, writes = [0] * ROW, [0] * ROW
    for number in range(step):
        (_, writing), first = walk.passes[number // blocks], number % blocks * width
        for element in range(first, first + width):
            reads[element] += 1
            writes[element] += writing
    return reads, writes


def _draw(kernel: str, step: int) -> Picture:
    walk = WALKS[kernel]
    blocks = 1 if walk.whole_row else ROW // BLOCK
    reads, writes = traffic(kernel, step)
    moved = BYTES * (sum(reads) + sum(writes))
    current = min(max(step - 1, 0) // blocks, len(walk.passes) - 1)
    purpose = walk.passes[current][0]
    now = f"Pass {current + 1} of {len(walk.passes)}: {purpose}." if step else "Before the first block."
    summary = f"{kernel.capitalize()}: {moved} bytes moved so far; a copy of this row moves {2 * ROW * BYTES}."
    if step == _steps(kernel):
        share = 2 * ROW * BYTES / moved
        summary += f" Done: {moved // ROW} bytes for each element, at most {share:.0%} of a copy's speed."
    drawing = Drawing(WIDTH, 118, f"{now} {summary}")
    left, side = 76, 48
    touched = _touched(walk, step, blocks)
    for y, name, counts, color in ((8, "read", reads, READ), (60, "written", writes, WRITE)):
        drawing.text(0, y + 27, name, weight=600)
        for element, times in enumerate(counts):
            strong = element in touched and (name == "read" or walk.passes[current][1])
            drawing.cell(
                left + element * side, y, side, 42, str(times), color if times else None, strong=strong,
                opacity=0.15 + 0.2 * times, note=f"element {element}: {name} {times} times",
            )  # fmt: skip
    lit = set(range(len(walk.lines))) if walk.whole_row else {walk.lit[current]}
    html = drawing.html() + paragraph(f"{now} {summary}") + code(list(walk.lines), lit if step else set())
    return Picture(html, f"{now}\n{summary}")


def _touched(walk: Walk, step: int, blocks: int) -> range:
    if not step:
        return range(0)
    first = (step - 1) % blocks * (ROW // blocks)
    return range(first, first + ROW // blocks)
