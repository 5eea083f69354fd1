"""The launch grid: which program touches which element, and which lanes the mask hides."""

from __future__ import annotations

import math

from workshop.explore.controls import Explorer, choice, slider
from workshop.picture import CYCLE, WIDTH, Drawing, Picture, count, paragraph

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
    below = 14 + math.ceil(lanes / per_line) * line_height
    drawing = Drawing(WIDTH, below + 142, f"{summary} {chosen}")
    drawing.text(0, 32, "x", weight=600)
    elements = [_element(element, n, element // block_size, program) for element in range(lanes)]
    for line in range(0, lanes, per_line):
        drawing.cells(left, 10 + line // per_line * line_height, side, 32, elements[line : line + per_line])
    drawing.text(0, below + 22, f"program {program}", weight=600)
    rows = {"lane": range(block_size), "offsets": offsets, "mask": [offset < n for offset in offsets]}
    for y, (name, values) in zip(range(below + 34, below + 136, 34), rows.items()):
        drawing.text(0, y + 20, name)
        colors = [CYCLE[program % len(CYCLE)] if offset < n else None for offset in offsets]
        drawing.cells(left, y, side, 30, [{"words": str(v), "color": c} for v, c in zip(values, colors)])
    code = f"offsets = {program} * {block_size} + tl.arange(0, {block_size});  mask = offsets < {n}"
    html = drawing.html() + paragraph(code, "code") + paragraph(summary) + paragraph(chosen)
    return Picture(html, "\n".join([code, summary, chosen]))


def _element(element: int, n: int, pid: int, program: int) -> dict:
    """How a lane is drawn: whose it is, and whether there is an element for it."""
    return {
        "words": str(element) if element < n else "",
        "color": CYCLE[pid % len(CYCLE)],
        "crossed": element >= n,
        "strong": pid == program,
        "opacity": 0.6 if pid == program else 0.18,
        "note": f"program {pid}" if element < n else f"program {pid}: no element, masked",
    }
