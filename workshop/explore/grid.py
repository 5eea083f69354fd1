"""The launch grid: which program touches which element, and which lanes the mask hides."""

from __future__ import annotations

import math

from workshop.explore.controls import Explorer, choice, slider
from workshop.picture import CYCLE, WIDTH, Drawing, Picture, paragraph
from workshop.words import count

MOST_ELEMENTS = 32
BLOCK_SIZES = (2, 4, 8, 16)


def launch_grid(n: int = 20, block_size: int = 8) -> Explorer:
    """Which program touches which of `n` elements (at most 32), and which lanes the mask hides."""
    if not 1 <= n <= MOST_ELEMENTS:
        raise ValueError(f"n is {n}, but this picture has room for 1 to {MOST_ELEMENTS} elements")
    return Explorer(
        _draw_launch_grid,
        n=slider("N, elements", n, range(1, MOST_ELEMENTS + 1)),
        block_size=choice("BLOCK_SIZE", block_size, BLOCK_SIZES),
        program=slider("look at program", 0, range(MOST_ELEMENTS // BLOCK_SIZES[0]), steps=True),
    )


def _draw_launch_grid(n: int, block_size: int, program: int) -> Picture | None:
    programs = math.ceil(n / block_size)
    if program >= programs:
        return None
    lanes = programs * block_size
    offsets = range(program * block_size, (program + 1) * block_size)
    hidden = sum(offset >= n for offset in offsets)
    summary = (
        f"{count(programs, 'program')} of {count(block_size, 'lane')}: {count(lanes, 'lane')} for "
        f"{count(n, 'element')}, {lanes - n} masked off ({(lanes - n) / lanes:.0%})."
    )
    chosen = f"Program {program} has {count(block_size - hidden, 'element')} and {count(hidden, 'masked lane')}."

    left, side, per_line, line_height = 72, 38, 16, 36
    lines = math.ceil(lanes / per_line)
    below = 14 + lines * line_height
    drawing = Drawing(WIDTH, below + 142, f"{summary} {chosen}")
    drawing.text(0, 32, "x", weight=600)
    for element in range(lanes):
        row, column = divmod(element, per_line)
        pid = element // block_size
        drawing.cell(
            left + column * side,
            10 + row * line_height,
            side,
            32,
            str(element) if element < n else "",
            CYCLE[pid % len(CYCLE)],
            crossed=element >= n,
            strong=pid == program,
            opacity=0.6 if pid == program else 0.18,
            note=f"program {pid}" if element < n else f"program {pid}: no element, masked",
        )
    drawing.text(0, below + 22, f"program {program}", weight=600)
    rows = {
        "lane": range(block_size),
        "offsets": offsets,
        "mask": ["True" if offset < n else "False" for offset in offsets],
    }
    for index, (name, values) in enumerate(rows.items()):
        y = below + 34 + index * 34
        drawing.text(0, y + 20, name)
        for lane, value in enumerate(values):
            live = offsets[lane] < n
            color = CYCLE[program % len(CYCLE)] if live else None
            drawing.cell(left + lane * side, y, side, 30, str(value), color)
    code = f"offsets = {program} * {block_size} + tl.arange(0, {block_size});  mask = offsets < {n}"
    html = drawing.html() + paragraph(code, "code") + paragraph(summary) + paragraph(chosen)
    return Picture(html, "\n".join([code, summary, chosen]))
